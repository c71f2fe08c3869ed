package container

import (
	"context"
	"errors"
	"fmt"

	"github.com/moby/moby/api/types/volume"
	"github.com/moby/moby/client"
)

// ensureWorkspace makes the volume of a box, or finds it. fresh tells which.
func (e *Engine) ensureWorkspace(ctx context.Context, s Spec) (name string, fresh bool, err error) {
	name = volumeName(s)
	have, err := e.volume(ctx, name)
	if err == nil {
		return name, false, e.checkWorkspace(have, s)
	}
	if !errors.Is(err, ErrNotFound) {
		return "", false, err
	}
	labels := map[string]string{LabelState: e.state}
	if s.Workspace != "" {
		labels[labelKept] = s.Workspace
	} else {
		labels[LabelLink] = s.Link
	}
	made, err := ask(ctx, op{"create workspace", slow}, func(ctx context.Context) (client.VolumeCreateResult, error) {
		return e.docker.VolumeCreate(ctx, client.VolumeCreateOptions{Name: name, Driver: "local", Labels: labels})
	})
	if err != nil {
		return "", false, err
	}
	// Docker answers with the existing volume where somebody was quicker.
	return name, true, e.checkWorkspace(made.Volume, s)
}

// checkWorkspace refuses a volume that another state directory, or somebody else, has made.
func (e *Engine) checkWorkspace(v volume.Volume, s Spec) error {
	if !e.owns(v.Labels) || v.Labels[labelKept] != s.Workspace {
		return fmt.Errorf("%w: volume %s", ErrConflict, v.Name)
	}
	return nil
}

func (e *Engine) volume(ctx context.Context, name string) (volume.Volume, error) {
	r, err := ask(ctx, op{"inspect workspace", quick}, func(ctx context.Context) (client.VolumeInspectResult, error) {
		return e.docker.VolumeInspect(ctx, name, client.VolumeInspectOptions{})
	})
	return r.Volume, err
}

func (e *Engine) volumes(ctx context.Context) ([]volume.Volume, error) {
	r, err := ask(ctx, op{"list workspaces", quick}, func(ctx context.Context) (client.VolumeListResult, error) {
		return e.docker.VolumeList(ctx, client.VolumeListOptions{Filters: e.ours()})
	})
	return r.Items, err
}

// removeVolume removes a volume; one that is gone already is no error.
func (e *Engine) removeVolume(ctx context.Context, name string) error {
	_, err := ask(ctx, op{"remove workspace", slow}, func(ctx context.Context) (client.VolumeRemoveResult, error) {
		return e.docker.VolumeRemove(ctx, name, client.VolumeRemoveOptions{})
	})
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}
