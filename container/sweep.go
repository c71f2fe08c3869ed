package container

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/moby/moby/api/types/volume"
)

// SweepOptions say what may be swept.
type SweepOptions struct {
	Known func(link string) bool // links that own what carries their id; if nil, none do
	Grace time.Duration          // younger things stay: somebody may be making them
	Now   time.Time              // if zero, the engine's clock
}

// Sweep removes what carries this state directory's label and no known link owns: what a
// crash, or a failure half way, left behind. Kept workspaces stay. It returns an item for
// each thing that it found, and nothing when all was clean.
func (e *Engine) Sweep(ctx context.Context, o SweepOptions) []Item {
	if o.Known == nil {
		o.Known = func(string) bool { return false }
	}
	if o.Now.IsZero() {
		o.Now = e.now()
	}
	before := o.Now.Add(-o.Grace)
	stray := func(link string, made time.Time) bool {
		return made.Before(before) && (link == "" || !o.Known(link))
	}
	items := e.sweepContainers(ctx, stray)
	items = append(items, e.sweepNetworks(ctx, stray)...)
	items = append(items, e.sweepVolumes(ctx, stray)...)
	return append(items, e.sweepFiles(ctx, stray)...)
}

// strayFunc tells whether a thing of link, made at a time, belongs to nobody.
type strayFunc func(link string, made time.Time) bool

func (e *Engine) sweepContainers(ctx context.Context, stray strayFunc) []Item {
	found, err := e.containers(ctx)
	if err != nil {
		return []Item{item("stray containers", err, "")}
	}
	var items []Item
	for _, c := range found {
		link := c.Labels[LabelLink]
		if !stray(link, time.Unix(c.Created, 0)) {
			continue
		}
		if link == "" {
			items = append(items, item("stray container "+strings.TrimPrefix(first(c.Names), "/"), e.removeContainer(ctx, c.ID), "gone"))
			continue
		}
		unlock := e.lock(link)
		for _, i := range e.removeBox(ctx, link) {
			items = append(items, Item{Name: "stray " + i.Name + " of " + link, OK: i.OK, Detail: i.Detail})
		}
		unlock()
	}
	return items
}

func (e *Engine) sweepNetworks(ctx context.Context, stray strayFunc) []Item {
	found, err := e.listNetworks(ctx, e.ours())
	if err != nil {
		return []Item{item("stray networks", err, "")}
	}
	var items []Item
	for _, n := range found {
		if link := n.Labels[LabelLink]; stray(link, n.Created) {
			items = append(items, item("stray network "+n.Name, e.removeNetwork(ctx, n.ID), "gone"))
		}
	}
	return items
}

func (e *Engine) sweepVolumes(ctx context.Context, stray strayFunc) []Item {
	found, err := e.volumes(ctx)
	if err != nil {
		return []Item{item("stray workspaces", err, "")}
	}
	var items []Item
	for _, v := range found {
		if v.Labels[labelKept] == "" && stray(v.Labels[LabelLink], volumeTime(v)) {
			items = append(items, item("stray workspace "+v.Name, e.removeVolume(ctx, v.Name), "gone"))
		}
	}
	return items
}

func volumeTime(v volume.Volume) time.Time {
	made, _ := time.Parse(time.RFC3339Nano, v.CreatedAt) // zero, long ago, when Docker does not say
	return made
}

// sweepFiles removes run directories, half-built images and agents that no box uses.
func (e *Engine) sweepFiles(ctx context.Context, stray strayFunc) []Item {
	var items []Item
	for _, d := range entries(filepath.Join(e.dir, "run")) {
		if stray(d.Name(), modTime(d)) {
			items = append(items, e.sweepFile("stray run directory of "+d.Name(), e.RunDir(d.Name())))
		}
	}
	for _, d := range entries(e.buildDir()) {
		if stray("", modTime(d)) && !e.building() {
			items = append(items, e.sweepFile("half-built image", filepath.Join(e.buildDir(), d.Name())))
		}
	}
	used, err := e.agentsInUse(ctx)
	if err != nil {
		return append(items, item("old agents", err, ""))
	}
	for _, d := range entries(filepath.Join(e.dir, "agent")) {
		dir := filepath.Join(e.dir, "agent", d.Name())
		if dir != e.bin && !used[dir] && stray("", modTime(d)) {
			items = append(items, e.sweepFile("old agent", dir))
		}
	}
	return items
}

func (e *Engine) sweepFile(name, dir string) Item {
	return item(name, os.RemoveAll(dir), "gone")
}

// agentsInUse are the agent directories that containers have mounted.
func (e *Engine) agentsInUse(ctx context.Context) (map[string]bool, error) {
	found, err := e.containers(ctx)
	used := map[string]bool{}
	for _, c := range found {
		for _, m := range c.Mounts {
			used[m.Source] = true
		}
	}
	return used, err
}

func entries(dir string) []fs.DirEntry {
	list, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return list
}

func modTime(d fs.DirEntry) time.Time {
	info, err := d.Info()
	if err != nil {
		return time.Now()
	}
	return info.ModTime()
}
