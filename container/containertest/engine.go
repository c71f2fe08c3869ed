package containertest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/berth-gpu/berth/container"
)

// Engine is container.Engine in memory. The zero value is of no use: see New.
type Engine struct {
	dir string
	now func() time.Time

	mu         sync.Mutex // guards what is below
	down       error      // what every verb fails with; nil: Docker lives
	images     map[string]bool
	boxes      map[string]container.Box
	workspaces map[string]time.Time // by name; kept ones begin with "ws-"
	pid        int
}

// New makes an Engine whose run directories are under dir. The images are present from the
// start; container.DefaultImage can be had.
func New(dir string, images ...string) *Engine {
	e := &Engine{
		dir: dir, now: time.Now, images: map[string]bool{},
		boxes: map[string]container.Box{}, workspaces: map[string]time.Time{}, pid: 1 << 22, // above any real one
	}
	for _, i := range images {
		e.images[i] = true
	}
	return e
}

// Down makes every verb fail with err, as a dead daemon does; nil mends it.
func (e *Engine) Down(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.down = err
}

// Stop ends a box's processes, as a restart of Docker does.
func (e *Engine) Stop(link string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if b, ok := e.boxes[link]; ok {
		b.Running, b.PID = false, 0
		e.boxes[link] = b
	}
}

// Ping tells whether Docker lives.
func (e *Engine) Ping(context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.down
}

// ImagePresent tells whether an image is there.
func (e *Engine) ImagePresent(_ context.Context, ref string) (bool, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.images[ref], e.down
}

// EnsureImage makes container.DefaultImage; no other can be had.
func (e *Engine) EnsureImage(_ context.Context, o container.ImageOptions) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if o.Ref == "" || o.Ref == container.DefaultImage {
		e.images[container.DefaultImage] = true
	}
	if e.down == nil && o.Ref != "" && !e.images[o.Ref] {
		return fmt.Errorf("ensure image %s: %w", o.Ref, container.ErrNoImage)
	}
	return e.down
}

// RunDir is where the link's box would see the gateway's socket.
func (e *Engine) RunDir(link string) string { return filepath.Join(e.dir, "run", link) }

// Run makes a box, or finds the one that is there.
func (e *Engine) Run(_ context.Context, s container.Spec) (container.Box, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.down != nil:
		return container.Box{}, e.down
	case s.Link == "" || (s.Network != container.Internet && s.Network != container.LAN && s.Network != container.NoNet):
		return container.Box{}, fmt.Errorf("run box: %w: %+v", container.ErrInvalid, s)
	}
	if b, ok := e.boxes[s.Link]; ok {
		return e.start(b), nil
	}
	if !e.images[s.Image] {
		return container.Box{}, fmt.Errorf("run box: %w: %s", container.ErrNoImage, s.Image)
	}
	if err := os.MkdirAll(e.RunDir(s.Link), 0o755); err != nil {
		return container.Box{}, err
	}
	name := s.Link
	if s.Workspace != "" {
		name = "ws-" + s.Workspace
	}
	if _, ok := e.workspaces[name]; !ok {
		e.workspaces[name] = e.now()
	}
	return e.start(container.Box{Link: s.Link, ID: "id-" + s.Link, Image: s.Image, Created: e.now()}), nil
}

// start runs b if it does not yet. The caller holds mu.
func (e *Engine) start(b container.Box) container.Box {
	if !b.Running {
		e.pid++
		b.Running, b.PID = true, e.pid
	}
	e.boxes[b.Link] = b
	return b
}

// Start starts a stopped box again.
func (e *Engine) Start(_ context.Context, link string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	b, err := e.box(link)
	if err == nil {
		e.start(b)
	}
	return err
}

// Box finds a box.
func (e *Engine) Box(_ context.Context, link string) (container.Box, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.box(link)
}

func (e *Engine) box(link string) (container.Box, error) {
	b, ok := e.boxes[link]
	switch {
	case e.down != nil:
		return container.Box{}, e.down
	case !ok:
		return container.Box{}, fmt.Errorf("inspect container: %w", container.ErrNotFound)
	}
	return b, nil
}

// List finds every box.
func (e *Engine) List(context.Context) ([]container.Box, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	list := []container.Box{}
	for _, b := range e.boxes {
		list = append(list, b)
	}
	return list, e.down
}

// Remove takes everything of a link away.
func (e *Engine) Remove(_ context.Context, o container.RemoveOptions) []container.Item {
	e.mu.Lock()
	defer e.mu.Unlock()
	done := container.Item{OK: e.down == nil, Detail: "gone"}
	if e.down != nil {
		done.Detail = e.down.Error()
	} else {
		delete(e.boxes, o.Link)
		if o.KeepWorkspace == "" {
			delete(e.workspaces, o.Link)
		}
	}
	var items []container.Item
	for _, name := range []string{"processes", "container", "network", "workspace"} {
		done.Name = name
		items = append(items, done)
	}
	last := container.Item{Name: "run directory", OK: true, Detail: "gone"}
	if err := os.RemoveAll(e.RunDir(o.Link)); err != nil {
		last.OK, last.Detail = false, err.Error()
	}
	return append(items, last)
}

// Sweep removes the boxes and workspaces that no link knows.
func (e *Engine) Sweep(ctx context.Context, o container.SweepOptions) []container.Item {
	if o.Now.IsZero() {
		o.Now = e.now()
	}
	stray := func(link string, made time.Time) bool {
		return made.Before(o.Now.Add(-o.Grace)) && (o.Known == nil || !o.Known(link))
	}
	var links []string
	e.mu.Lock()
	for link, made := range e.workspaces {
		if _, ok := e.boxes[link]; !ok && stray(link, made) && !kept(link) {
			links = append(links, link)
		}
	}
	for link, b := range e.boxes {
		if stray(link, b.Created) {
			links = append(links, link)
		}
	}
	e.mu.Unlock()
	var items []container.Item
	for _, link := range links {
		for _, i := range e.Remove(ctx, container.RemoveOptions{Link: link}) {
			i.Name = "stray " + i.Name + " of " + link
			items = append(items, i)
		}
	}
	return items
}

func kept(name string) bool { return len(name) > 3 && name[:3] == "ws-" }
