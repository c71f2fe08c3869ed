package containertest_test

import (
	"errors"
	"testing"

	"github.com/berth-gpu/berth/container"
	"github.com/berth-gpu/berth/container/containertest"
)

func TestSuite(t *testing.T) {
	e := containertest.New(t.TempDir(), "image:1")
	containertest.Suite(t, containertest.Subject{
		Engine: e, Image: "image:1", Stop: func(_ *testing.T, link string) { e.Stop(link) },
	})
}

func TestDown(t *testing.T) {
	e := containertest.New(t.TempDir(), "image:1")
	e.Down(container.ErrUnavailable)
	if _, err := e.Run(t.Context(), container.Spec{Link: "a", Image: "image:1", Network: container.NoNet}); !errors.Is(err, container.ErrUnavailable) {
		t.Errorf("Run: %v", err)
	}
	if err := e.Ping(t.Context()); !errors.Is(err, container.ErrUnavailable) {
		t.Errorf("Ping: %v", err)
	}
	if items := e.Remove(t.Context(), container.RemoveOptions{Link: "a"}); items[0].OK {
		t.Errorf("Remove: %+v", items)
	}
}
