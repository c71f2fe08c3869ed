package container

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"
)

// RemoveOptions say whose box goes.
type RemoveOptions struct {
	Link          string
	KeepWorkspace string // name of the workspace that stays; empty: it goes with the link
}

// Remove takes away everything of one link and asks Docker afterwards whether it is gone: an
// item is OK only if so. It may be repeated, after a crash or a failure, as often as one likes.
func (e *Engine) Remove(ctx context.Context, o RemoveOptions) []Item {
	if !validLink.MatchString(o.Link) {
		return []Item{item("container", fmt.Errorf("%w: link id %q", ErrInvalid, o.Link), "")}
	}
	defer e.lock(o.Link)()
	items := e.removeBox(ctx, o.Link)
	items = append(items, e.removeNetworks(ctx, o.Link))
	if o.KeepWorkspace != "" {
		items = append(items, e.keepWorkspace(ctx, o.KeepWorkspace))
	} else {
		items = append(items, e.removeWorkspace(ctx, boxName(o.Link)))
	}
	return append(items, removeRunDir(e.RunDir(o.Link)))
}

// item is a receipt's line: done when err is nil.
func item(name string, err error, done string) Item {
	if err != nil {
		return Item{Name: name, Detail: err.Error()}
	}
	return Item{Name: name, OK: true, Detail: done}
}

// removeBox kills and removes the container.
func (e *Engine) removeBox(ctx context.Context, link string) []Item {
	c, err := e.inspect(ctx, link)
	switch {
	case errors.Is(err, ErrNotFound):
		return []Item{item("processes", nil, "none left"), item("container", nil, "gone")}
	case err != nil:
		return []Item{item("processes", err, ""), item("container", err, "")}
	}
	failed := e.removeContainer(ctx, c.ID)
	err = e.await(ctx, func(ctx context.Context) (bool, error) {
		_, err := e.inspect(ctx, link)
		if errors.Is(err, ErrNotFound) {
			return true, nil
		}
		return false, err
	})
	if err != nil {
		err = errors.Join(err, failed)
	}
	pid := boxOf(c).PID
	alive := err // as long as Docker has the container we do not know better
	if err == nil && pid > 0 {
		alive = e.await(ctx, func(context.Context) (bool, error) { return !inContainer(pid, c.ID), nil })
	}
	return []Item{item("processes", alive, "killed"), item("container", err, "gone")}
}

// inContainer tells whether the process that was a container's PID 1 still lives. With it the
// kernel kills its whole pid namespace, pid_namespaces(7).
func inContainer(pid int, id string) bool {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	return err == nil && strings.Contains(string(data), id)
}

func (e *Engine) removeNetworks(ctx context.Context, link string) Item {
	nets, err := e.networks(ctx, link)
	var failed []error
	for _, n := range nets {
		failed = append(failed, e.removeNetwork(ctx, n.ID))
	}
	if err == nil {
		nets, err = e.networks(ctx, link)
	}
	if err == nil && len(nets) > 0 {
		err = errors.Join(append(failed, errors.New("still there"))...)
	}
	return item("network", err, "gone")
}

func (e *Engine) removeWorkspace(ctx context.Context, name string) Item {
	v, err := e.volume(ctx, name)
	if errors.Is(err, ErrNotFound) {
		return item("workspace", nil, "gone")
	}
	if err == nil && !e.owns(v.Labels) {
		err = fmt.Errorf("%w: volume %s", ErrConflict, name)
	}
	if err != nil {
		return item("workspace", err, "")
	}
	failed := e.removeVolume(ctx, name)
	if _, err = e.volume(ctx, name); errors.Is(err, ErrNotFound) {
		return item("workspace", nil, "gone")
	}
	return item("workspace", errors.Join(failed, err, errors.New("still there")), "")
}

func (e *Engine) keepWorkspace(ctx context.Context, name string) Item {
	_, err := e.volume(ctx, "berth-ws-"+name)
	if errors.Is(err, ErrNotFound) {
		return item("workspace", nil, "kept as "+name+", never used")
	}
	return item("workspace", err, "kept as "+name)
}

func removeRunDir(dir string) Item {
	err := os.RemoveAll(dir)
	if _, st := os.Lstat(dir); err == nil && !errors.Is(st, fs.ErrNotExist) {
		err = errors.New("still there")
	}
	return item("run directory", err, "gone")
}

// awaitLimit is how long a thing may take to go after Docker said that it would.
const awaitLimit = 30 * time.Second

// await polls until done, which Docker makes necessary: it has no event that says "gone" and
// cannot be missed.
func (e *Engine) await(ctx context.Context, done func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, awaitLimit)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		ok, err := done(ctx)
		if ok || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return errors.New("still there")
		}
	}
}
