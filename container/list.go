package container

import (
	"context"
	"fmt"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
)

// Box finds the box of link. The error wraps ErrNotFound when Docker knows none.
func (e *Engine) Box(ctx context.Context, link string) (Box, error) {
	c, err := e.inspect(ctx, link)
	if err != nil {
		return Box{}, err
	}
	return boxOf(c), nil
}

// List finds every box of this state directory, running or not.
func (e *Engine) List(ctx context.Context) ([]Box, error) {
	found, err := e.containers(ctx)
	if err != nil {
		return nil, err
	}
	boxes := []Box{}
	for _, c := range found {
		link := c.Labels[LabelLink]
		if link == "" {
			continue // one that is only looked into
		}
		box, err := e.Box(ctx, link)
		if err != nil {
			box = Box{Link: link, ID: c.ID, Image: c.Image, Created: time.Unix(c.Created, 0)}
			e.log.Warn("cannot inspect container", "link", link, "cause", err)
		}
		boxes = append(boxes, box)
	}
	return boxes, nil
}

// containers lists what carries our LabelState, in any state.
func (e *Engine) containers(ctx context.Context) ([]container.Summary, error) {
	return ask(ctx, op{"list containers", quick}, func(ctx context.Context) ([]container.Summary, error) {
		r, err := e.docker.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: e.ours()})
		return r.Items, err
	})
}

// ours selects what this Engine has made.
func (e *Engine) ours() client.Filters {
	return client.Filters{}.Add("label", LabelState+"="+e.state)
}

// inspect reads one container by its link. One that has our name but not our labels is
// somebody else's: ErrConflict.
func (e *Engine) inspect(ctx context.Context, link string) (container.InspectResponse, error) {
	if !validLink.MatchString(link) {
		return container.InspectResponse{}, fmt.Errorf("%w: link id %q", ErrInvalid, link)
	}
	r, err := ask(ctx, op{"inspect container", quick}, func(ctx context.Context) (client.ContainerInspectResult, error) {
		return e.docker.ContainerInspect(ctx, boxName(link), client.ContainerInspectOptions{})
	})
	if err != nil {
		return r.Container, err
	}
	if !e.owns(r.Container.Config.Labels) {
		return r.Container, fmt.Errorf("%w: container %s", ErrConflict, boxName(link))
	}
	return r.Container, nil
}

func (e *Engine) owns(labels map[string]string) bool { return labels[LabelState] == e.state }

func boxOf(c container.InspectResponse) Box {
	b := Box{Link: c.Config.Labels[LabelLink], ID: c.ID, Image: c.Config.Image}
	b.Created, _ = time.Parse(time.RFC3339Nano, c.Created)
	if s := c.State; s != nil {
		// Without live-restore a dead daemon's containers can be listed as running with no process.
		b.Running = s.Running && s.Pid > 0
		b.OOM = s.OOMKilled
		if b.Running {
			b.PID = s.Pid
		}
	}
	return b
}
