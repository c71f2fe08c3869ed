package containertest

import (
	"context"
	"errors"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/berth-gpu/berth/container"
)

// verbs is what the suite needs of an engine.
type verbs interface {
	Run(ctx context.Context, s container.Spec) (container.Box, error)
	Start(ctx context.Context, link string) error
	Remove(ctx context.Context, o container.RemoveOptions) []container.Item
	Sweep(ctx context.Context, o container.SweepOptions) []container.Item
	finder
}

type finder interface {
	Box(ctx context.Context, link string) (container.Box, error)
	List(ctx context.Context) ([]container.Box, error)
	RunDir(link string) string
	ImagePresent(ctx context.Context, ref string) (bool, error)
	EnsureImage(ctx context.Context, o container.ImageOptions) error
}

// Subject is an engine under test.
type Subject struct {
	Engine verbs
	Image  string                          // present
	Stop   func(t *testing.T, link string) // ends a box's processes behind the engine's back
}

// Suite checks what every engine promises. It leaves nothing behind when it passes.
func Suite(t *testing.T, s Subject) {
	t.Helper()
	t.Run("image", s.image)
	t.Run("life", s.life)
	t.Run("stopped", s.stopped)
	t.Run("refused", s.refused)
	t.Run("sweep", s.sweep)
	boxes, err := s.Engine.List(t.Context())
	if err != nil || len(boxes) != 0 {
		t.Errorf("left: %+v, %v", boxes, err)
	}
}

func (s Subject) spec(link string) container.Spec {
	return container.Spec{Link: link, Image: s.Image, Network: container.NoNet}
}

func (s Subject) run(t *testing.T, spec container.Spec) container.Box {
	t.Helper()
	b, err := s.Engine.Run(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func passed(t *testing.T, items []container.Item) {
	t.Helper()
	for _, i := range items {
		if !i.OK {
			t.Errorf("%s: %s", i.Name, i.Detail)
		}
	}
}

func (s Subject) image(t *testing.T) {
	if there, err := s.Engine.ImagePresent(t.Context(), s.Image); !there || err != nil {
		t.Errorf("present: %v, %v", there, err)
	}
	if err := s.Engine.EnsureImage(t.Context(), container.ImageOptions{Ref: s.Image}); err != nil {
		t.Error(err)
	}
	if there, err := s.Engine.ImagePresent(t.Context(), "berth-test-nosuch:1"); there || err != nil {
		t.Errorf("not present: %v, %v", there, err)
	}
	if _, err := s.Engine.Run(t.Context(), container.Spec{Link: "suite0", Image: "berth-test-nosuch:1", Network: container.NoNet}); !errors.Is(err, container.ErrNoImage) {
		t.Errorf("Run without its image: %v", err)
	}
}

func (s Subject) life(t *testing.T) {
	b := s.run(t, s.spec("suite1"))
	if b.Link != "suite1" || b.ID == "" || b.PID == 0 || !b.Running || b.Image != s.Image || b.Created.IsZero() {
		t.Errorf("box: %+v", b)
	}
	if again := s.run(t, s.spec("suite1")); again != b {
		t.Errorf("second Run: %+v, want %+v", again, b)
	}
	if got, err := s.Engine.Box(t.Context(), "suite1"); err != nil || got != b {
		t.Errorf("Box: %+v, %v", got, err)
	}
	if list, err := s.Engine.List(t.Context()); err != nil || !slices.Contains(list, b) {
		t.Errorf("List: %+v, %v", list, err)
	}
	if err := s.Engine.Start(t.Context(), "suite1"); err != nil {
		t.Errorf("Start of a box that runs: %v", err)
	}
	if _, err := os.Stat(s.Engine.RunDir("suite1")); err != nil {
		t.Errorf("run directory: %v", err)
	}
	for range 2 {
		items := s.Engine.Remove(t.Context(), container.RemoveOptions{Link: "suite1"})
		passed(t, items)
		for _, want := range []string{"processes", "container", "network", "workspace", "run directory"} {
			if !slices.ContainsFunc(items, func(i container.Item) bool { return i.Name == want }) {
				t.Errorf("no item %q in %+v", want, items)
			}
		}
	}
	if _, err := s.Engine.Box(t.Context(), "suite1"); !errors.Is(err, container.ErrNotFound) {
		t.Errorf("Box of a removed one: %v", err)
	}
	if err := s.Engine.Start(t.Context(), "suite1"); !errors.Is(err, container.ErrNotFound) {
		t.Errorf("Start of a removed one: %v", err)
	}
}

func (s Subject) stopped(t *testing.T) {
	b := s.run(t, s.spec("suite2"))
	s.Stop(t, "suite2")
	if got, err := s.Engine.Box(t.Context(), "suite2"); err != nil || got.Running || got.PID != 0 || got.ID != b.ID {
		t.Errorf("stopped: %+v, %v", got, err)
	}
	if err := s.Engine.Start(t.Context(), "suite2"); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Engine.Box(t.Context(), "suite2"); err != nil || !got.Running || got.PID == b.PID || got.ID != b.ID {
		t.Errorf("started: %+v, %v", got, err)
	}
	s.Stop(t, "suite2")
	if got := s.run(t, s.spec("suite2")); !got.Running || got.ID != b.ID {
		t.Errorf("Run of a stopped box: %+v", got)
	}
	passed(t, s.Engine.Remove(t.Context(), container.RemoveOptions{Link: "suite2"}))
}

func (s Subject) refused(t *testing.T) {
	for _, bad := range []container.Spec{
		{Link: "", Image: s.Image, Network: container.NoNet},
		{Link: "suite3", Image: s.Image, Network: "host"},
	} {
		if _, err := s.Engine.Run(t.Context(), bad); !errors.Is(err, container.ErrInvalid) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

func (s Subject) sweep(t *testing.T) {
	s.run(t, s.spec("suite4"))
	s.run(t, s.spec("suite5"))
	o := container.SweepOptions{Known: func(l string) bool { return l == "suite4" }, Grace: time.Hour}
	if items := s.Engine.Sweep(t.Context(), o); len(items) != 0 {
		t.Errorf("too early: %+v", items)
	}
	o.Now = time.Now().Add(2 * time.Hour)
	items := s.Engine.Sweep(t.Context(), o)
	passed(t, items)
	if len(items) == 0 {
		t.Error("nothing was swept")
	}
	if list, err := s.Engine.List(t.Context()); err != nil || len(list) != 1 || list[0].Link != "suite4" {
		t.Errorf("after the sweep: %+v, %v", list, err)
	}
	if items := s.Engine.Sweep(t.Context(), o); len(items) != 0 {
		t.Errorf("second sweep: %+v", items)
	}
	passed(t, s.Engine.Remove(t.Context(), container.RemoveOptions{Link: "suite4"}))
}
