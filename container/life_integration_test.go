//go:build integration

package container_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/berth-gpu/berth/container"
	"github.com/berth-gpu/berth/container/containertest"
)

// allOK fails the test for each item that is not done.
func allOK(t *testing.T, items []container.Item) {
	t.Helper()
	for _, i := range items {
		if !i.OK {
			t.Errorf("%s: %s", i.Name, i.Detail)
		}
	}
}

// left lists what Docker has of an engine.
func left(t *testing.T, e *container.Engine) string {
	t.Helper()
	label := "label=" + container.LabelState + "=" + e.State()
	return strings.TrimSpace(docker(t, "ps", "-aq", "--filter", label) + " " +
		docker(t, "network", "ls", "-q", "--filter", label) + " " +
		docker(t, "volume", "ls", "-q", "--filter", label))
}

func TestRunTwiceRemoveTwice(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	s := container.Spec{Link: "twice", Image: guestImage(t, e), Network: container.Internet}
	b := run(t, e, s)
	again, err := e.Run(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	if again != b.Box {
		t.Errorf("second Run: got %+v, want %+v", again, b.Box)
	}
	if boxes, err := e.List(t.Context()); err != nil || len(boxes) != 1 || boxes[0] != b.Box {
		t.Errorf("List: %+v, %v", boxes, err)
	}
	allOK(t, e.Sweep(t.Context(), container.SweepOptions{Known: func(l string) bool { return l == "twice" }, Now: time.Now().Add(time.Hour)}))
	if _, err := e.Box(t.Context(), "twice"); err != nil {
		t.Errorf("the sweep took a known box: %v", err)
	}
	b.sh(t, "setsid sleep 1000 >/dev/null 2>&1 &")
	for range 2 {
		items := e.Remove(t.Context(), container.RemoveOptions{Link: "twice"})
		allOK(t, items)
		var names []string
		for _, i := range items {
			names = append(names, i.Name)
		}
		if got := strings.Join(names, ","); got != "processes,container,network,workspace,run directory" {
			t.Errorf("items: %s", got)
		}
	}
	if l := left(t, e); l != "" {
		t.Errorf("left: %s", l)
	}
	if _, err := os.Stat(e.RunDir("twice")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("run directory: %v", err)
	}
	if _, err := e.Box(t.Context(), "twice"); !errors.Is(err, container.ErrNotFound) {
		t.Errorf("Box: %v, want ErrNotFound", err)
	}
	if err := e.Start(t.Context(), "twice"); !errors.Is(err, container.ErrNotFound) {
		t.Errorf("Start: %v, want ErrNotFound", err)
	}
}

func TestStartAgain(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	s := container.Spec{Link: "again", Image: guestImage(t, e), Network: container.Internet}
	b := run(t, e, s)
	b.sh(t, "echo kept > ~/f; echo gone > /tmp/f")
	docker(t, "kill", boxName("again"))
	if got, err := e.Box(t.Context(), "again"); err != nil || got.Running || got.PID != 0 {
		t.Errorf("killed box: %+v, %v", got, err)
	}
	if err := os.Remove(filepath.Join(e.RunDir("again"), "agent.sock")); err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	ln, err := net.Listen("unix", filepath.Join(e.RunDir("again"), "agent.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	if err := os.Chmod(ln.Addr().String(), 0o666); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := e.Start(t.Context(), "again"); err != nil {
			t.Fatal(err)
		}
	}
	b = accept(t, ln, b.Box)
	if got := b.sh(t, "cat ~/f; ls /tmp"); got != "kept" {
		t.Errorf("after the restart: %q", got)
	}
	if got := b.sh(t, "grep CapEff /proc/self/status"); got != "CapEff:\t0000000000000000" {
		t.Errorf("after the restart: %q", got)
	}
}

func TestFailureLeavesNothing(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	img := guestImage(t, e)
	for _, c := range []struct {
		name string
		spec container.Spec
		want error
	}{
		{"no image", container.Spec{Image: "berth-test-no-such:1", Network: container.Internet}, container.ErrNoImage},
		{"bad runtime", container.Spec{Image: img, Network: container.Internet, Runtime: "nosuch"}, container.ErrInvalid},
		{"bad cpus", container.Spec{Image: img, Network: container.Internet, CPUs: 1e6}, container.ErrInvalid},
		{"no such device", container.Spec{Image: img, Network: container.Internet, Devices: []string{"/dev/nosuch"}}, nil},
		{"bad network", container.Spec{Image: img, Network: "host"}, container.ErrInvalid},
		{"no such mount", container.Spec{Image: img, Network: container.Internet, Mounts: []container.Mount{{Source: "/nosuch", Target: "/mnt"}}}, container.ErrInvalid},
		{"docker socket", container.Spec{Image: img, Network: container.NoNet, Mounts: []container.Mount{{Source: "/var/run/docker.sock", Target: "/s"}}}, container.ErrInvalid},
		{"run directory", container.Spec{Image: img, Network: container.NoNet, Mounts: []container.Mount{{Source: "/run", Target: "/s"}}}, container.ErrInvalid},
		{"root", container.Spec{Image: img, Network: container.NoNet, Mounts: []container.Mount{{Source: "/", Target: "/s"}}}, container.ErrInvalid},
	} {
		c.spec.Link = "fails"
		_, err := e.Run(t.Context(), c.spec)
		if err == nil || (c.want != nil && !errors.Is(err, c.want)) {
			t.Errorf("%s: got %v, want %v", c.name, err, c.want)
		}
		if l := left(t, e); l != "" {
			t.Errorf("%s: left %s", c.name, l)
		}
		if _, err := os.Stat(e.RunDir("fails")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: run directory is left: %v", c.name, err)
		}
	}
}

func TestSetupFails(t *testing.T) {
	t.Parallel()
	need(t, "docker", exec.Command("docker", "info").Run())
	e, err := container.Open(container.Options{
		Dir: filepath.Join(t.TempDir(), "state"), Env: os.Getenv,
		Agent: []byte("#!/bin/sh\necho cannot limit network: it is broken >&2\nexit 1\n"),
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = e.Run(t.Context(), container.Spec{Link: "setup", Image: guestImage(t, e), Network: container.Internet})
	if !errors.Is(err, container.ErrSetup) || !strings.Contains(err.Error(), "it is broken") {
		t.Errorf("Run: %v", err)
	}
	if l := left(t, e); l != "" {
		t.Errorf("left: %s", l)
	}
}

func TestSweep(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	img := guestImage(t, e)
	run(t, e, container.Spec{Link: "known", Image: img, Network: container.NoNet})
	run(t, e, container.Spec{Link: "stray", Image: img, Network: container.Internet})
	run(t, e, container.Spec{Link: "keeper", Image: img, Network: container.NoNet, Workspace: "sweeptest"})
	known := func(l string) bool { return l == "known" }
	if items := e.Sweep(t.Context(), container.SweepOptions{Known: known, Grace: time.Hour}); len(items) > 0 {
		t.Errorf("swept within the grace period: %+v", items)
	}
	o := container.SweepOptions{Known: known, Grace: time.Minute, Now: time.Now().Add(2 * time.Minute)}
	items := e.Sweep(t.Context(), o)
	allOK(t, items)
	if len(items) < 5 {
		t.Errorf("swept only %+v", items)
	}
	boxes, err := e.List(t.Context())
	if err != nil || len(boxes) != 1 || boxes[0].Link != "known" {
		t.Errorf("left: %+v, %v", boxes, err)
	}
	docker(t, "volume", "inspect", "berth-ws-sweeptest")
	if items := e.Sweep(t.Context(), o); len(items) > 0 {
		t.Errorf("second sweep: %+v", items)
	}
}

func TestKeptWorkspace(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	s := container.Spec{Link: "kept1", Image: guestImage(t, e), Network: container.NoNet, Workspace: "kepttest"}
	run(t, e, s).sh(t, "echo mine > ~/f && chmod 700 ~")
	allOK(t, e.Remove(t.Context(), container.RemoveOptions{Link: "kept1", KeepWorkspace: "kepttest"}))
	s.Link, s.Root = "kept2", true
	if got := run(t, e, s).sh(t, "cat ~/f; stat -c %u ~ ~/f"); got != "mine\n0\n0" {
		t.Errorf("another user's box: %q", got)
	}
	allOK(t, e.Remove(t.Context(), container.RemoveOptions{Link: "kept2", KeepWorkspace: "kepttest"}))
	s.Link, s.Root = "kept3", false
	if got := run(t, e, s).sh(t, "cat ~/f; stat -c %u ~ ~/f"); got != "mine\n1000\n1000" {
		t.Errorf("the first user's again: %q", got)
	}
}

func TestDeadDocker(t *testing.T) {
	t.Parallel()
	e, err := container.Open(container.Options{Dir: t.TempDir(), Host: "unix://" + filepath.Join(t.TempDir(), "none.sock")})
	if err != nil {
		t.Fatal(err)
	}
	_, listErr := e.List(t.Context())
	_, boxErr := e.Box(t.Context(), "x")
	_, runErr := e.Run(t.Context(), container.Spec{Link: "x", Image: "y", Network: container.Internet})
	_, imageErr := e.ImagePresent(t.Context(), "y")
	_, diskErr := e.FreeDisk(t.Context())
	for name, err := range map[string]error{
		"Ping": e.Ping(t.Context()), "List": listErr, "Box": boxErr, "Run": runErr, "ImagePresent": imageErr,
		"FreeDisk": diskErr, "Start": e.Start(t.Context(), "x"),
		"EnsureImage": e.EnsureImage(t.Context(), container.ImageOptions{Ref: "y"}),
	} {
		if !errors.Is(err, container.ErrUnavailable) {
			t.Errorf("%s: %v, want ErrUnavailable", name, err)
		}
	}
	for _, i := range e.Remove(t.Context(), container.RemoveOptions{Link: "x"}) {
		if i.OK && i.Name != "run directory" {
			t.Errorf("Remove: %s passes without Docker", i.Name)
		}
	}
}

// TestSuite holds the real engine to what its twin promises.
func TestSuite(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	containertest.Suite(t, containertest.Subject{
		Engine: e, Image: guestImage(t, e), Stop: func(t *testing.T, link string) { t.Helper(); docker(t, "kill", boxName(link)) },
	})
}

// TestTogether makes and removes many boxes at once.
func TestTogether(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	img := guestImage(t, e)
	var wg sync.WaitGroup
	for i := range 6 {
		link := fmt.Sprint("together", i/2) // two callers for each link
		wg.Go(func() {
			b, err := e.Run(t.Context(), container.Spec{Link: link, Image: img, Network: container.Internet})
			if err != nil || !b.Running {
				t.Errorf("%s: %+v, %v", link, b, err)
			}
		})
	}
	wg.Wait()
	if boxes, err := e.List(t.Context()); err != nil || len(boxes) != 3 {
		t.Errorf("List: %+v, %v", boxes, err)
	}
	for i := range 6 {
		wg.Go(func() {
			for _, item := range e.Remove(t.Context(), container.RemoveOptions{Link: fmt.Sprint("together", i/2)}) {
				if !item.OK {
					t.Errorf("%s: %s", item.Name, item.Detail)
				}
			}
		})
	}
	wg.Wait()
	if l := left(t, e); l != "" {
		t.Errorf("left: %s", l)
	}
}

// TestOldAgentStays makes sure that a box keeps the agent that it was made with.
func TestOldAgentStays(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	run(t, e, container.Spec{Link: "oldagent", Image: guestImage(t, e), Network: container.NoNet})
	dir := filepath.Dir(filepath.Dir(e.RunDir("x")))
	newer, err := container.Open(container.Options{Dir: dir, Agent: []byte("newer"), Env: os.Getenv})
	if err != nil {
		t.Fatal(err)
	}
	agents := func() int {
		list, err := os.ReadDir(filepath.Join(dir, "agent"))
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	o := container.SweepOptions{Known: func(string) bool { return true }, Now: time.Now().Add(time.Hour)}
	allOK(t, newer.Sweep(t.Context(), o))
	if n := agents(); n != 2 {
		t.Errorf("%d agents while a box has the old one", n)
	}
	docker(t, "kill", boxName("oldagent"))
	if err := newer.Start(t.Context(), "oldagent"); err != nil {
		t.Errorf("start with the old agent: %v", err)
	}
	allOK(t, newer.Remove(t.Context(), container.RemoveOptions{Link: "oldagent"}))
	allOK(t, newer.Sweep(t.Context(), o))
	if n := agents(); n != 1 {
		t.Errorf("%d agents after the box is gone", n)
	}
}
