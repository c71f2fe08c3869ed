package container

import (
	"archive/tar"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	docker "github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
)

// imageView is what we must know of an image before a box of it can be made. It is read once
// for each image id and kept in the state directory.
type imageView struct {
	Form   int      `json:"form"` // viewForm of the program that read it
	ID     string   `json:"id"`
	User   string   `json:"user"` // its USER
	Env    []string `json:"env"`
	Users  users    `json:"users"`
	Shells []string `json:"shells"` // those of /etc/passwd, and the usual ones, that are there
}

// viewForm changes when imageView is read in another way, so that old ones are not believed.
const viewForm = 1

// view reads an image, or remembers it. The error wraps ErrNoImage when it is not present.
func (e *Engine) view(ctx context.Context, ref string) (*imageView, error) {
	image, err := ask(ctx, op{"inspect image", quick}, func(ctx context.Context) (client.ImageInspectResult, error) {
		return e.docker.ImageInspect(ctx, ref)
	})
	if errors.Is(err, ErrNotFound) {
		return nil, fmt.Errorf("%w: %s", ErrNoImage, ref)
	}
	if err != nil {
		return nil, err
	}
	if v := e.remembered(image.ID); v != nil {
		return v, nil
	}
	v := &imageView{Form: viewForm, ID: image.ID}
	if image.Config != nil {
		v.User, v.Env = image.Config.User, image.Config.Env
	}
	if err := e.look(ctx, v); err != nil {
		return nil, fmt.Errorf("look into image %s: %w", ref, err)
	}
	e.remember(v)
	return v, nil
}

func (e *Engine) viewFile(id string) string {
	return filepath.Join(e.dir, "images", strings.ReplaceAll(id, ":", "-")+".json")
}

func (e *Engine) remembered(id string) *imageView {
	e.mu.Lock()
	v := e.looks[id]
	e.mu.Unlock()
	if v != nil {
		return v
	}
	data, err := os.ReadFile(e.viewFile(id))
	v = new(imageView)
	if err != nil || json.Unmarshal(data, v) != nil || v.ID != id || v.Form != viewForm {
		return nil
	}
	return v
}

// remember keeps v. If it cannot be written it is read again next time.
func (e *Engine) remember(v *imageView) {
	e.mu.Lock()
	e.looks[v.ID] = v
	e.mu.Unlock()
	data, err := json.Marshal(v)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(e.viewFile(v.ID)), 0o700)
	}
	if err == nil {
		err = writeFile(e.viewFile(v.ID), data, 0o600)
	}
	if err != nil {
		e.log.Warn("cannot keep what an image looks like", "image", v.ID, "cause", err)
	}
}

// look reads files out of an image. Docker has no call for that, so a container is created
// and never started.
func (e *Engine) look(ctx context.Context, v *imageView) error {
	made, err := ask(ctx, op{"create container", slow}, func(ctx context.Context) (client.ContainerCreateResult, error) {
		return e.docker.ContainerCreate(ctx, client.ContainerCreateOptions{
			Name: "berth-look-" + strings.ToLower(rand.Text())[:12],
			Config: &docker.Config{
				Image: v.ID, Entrypoint: []string{"/never-started"}, NetworkDisabled: true,
				Labels: map[string]string{LabelState: e.state, labelTemp: "look"},
			},
			HostConfig: &docker.HostConfig{NetworkMode: "none", ReadonlyRootfs: true},
		})
	})
	if err != nil {
		return err
	}
	defer func() { _ = e.removeContainer(context.WithoutCancel(ctx), made.ID) }()
	if v.Users.Passwd, err = e.readFrom(ctx, made.ID, "/etc/passwd"); err != nil {
		return err
	}
	if v.Users.Group, err = e.readFrom(ctx, made.ID, "/etc/group"); err != nil {
		return err
	}
	shells := []string{"/bin/bash", "/bin/sh"}
	for _, a := range v.Users.accounts() {
		if isShell(a.Shell) && !slices.Contains(shells, a.Shell) && len(shells) < 16 {
			shells = append(shells, a.Shell)
		}
	}
	for _, s := range shells {
		if file, err := e.regular(ctx, made.ID, s); err != nil {
			return err
		} else if file != "" {
			v.Shells = append(v.Shells, s)
		}
	}
	return nil
}

// isShell tells a shell from the programs that stand in passwd to refuse a login.
func isShell(s string) bool {
	switch path.Base(s) {
	case "nologin", "false", "true", "sync", "halt", "shutdown":
		return false
	}
	return path.IsAbs(s)
}

// shellFor is a's shell if the image has it, else the best that it has.
func (v *imageView) shellFor(a account) string {
	for _, s := range []string{a.Shell, "/bin/bash", "/bin/sh"} {
		if isShell(s) && slices.Contains(v.Shells, s) {
			return s
		}
	}
	return ""
}

// regular finds a regular file in a container, through symbolic links, and returns its path;
// "" when there is none.
func (e *Engine) regular(ctx context.Context, id, name string) (string, error) {
	for range 2 { // Docker resolves the whole chain and tells the end, without looking at it
		r, err := ask(ctx, op{"look for " + name, quick}, func(ctx context.Context) (client.ContainerStatPathResult, error) {
			return e.docker.ContainerStatPath(ctx, id, client.ContainerStatPathOptions{Path: name})
		})
		switch {
		case errors.Is(err, ErrNotFound):
			return "", nil
		case err != nil:
			return "", err
		case r.Stat.Mode.IsRegular():
			return name, nil
		case r.Stat.Mode&os.ModeSymlink == 0 || r.Stat.LinkTarget == "":
			return "", nil
		}
		name = r.Stat.LinkTarget
	}
	return "", nil
}

// maxUsers bounds /etc/passwd and /etc/group of an image.
const maxUsers = 1 << 20

// readFrom reads a small text file out of a container; "" when there is none.
func (e *Engine) readFrom(ctx context.Context, id, name string) (string, error) {
	file, err := e.regular(ctx, id, name)
	if err != nil || file == "" {
		return "", err
	}
	return ask(ctx, op{"read " + name, quick}, func(ctx context.Context) (string, error) {
		r, err := e.docker.CopyFromContainer(ctx, id, client.CopyFromContainerOptions{SourcePath: file})
		if err != nil {
			return "", err
		}
		defer func() { _ = r.Content.Close() }()
		t := tar.NewReader(r.Content)
		if _, err := t.Next(); err != nil {
			return "", err
		}
		data, err := io.ReadAll(io.LimitReader(t, maxUsers+1))
		if len(data) > maxUsers {
			return "", fmt.Errorf("%w: it is larger than %s", ErrInvalid, humanBytes(maxUsers))
		}
		return string(data), err
	})
}

// removeContainer kills and removes one container with its anonymous volumes; one that is
// gone already is no error.
func (e *Engine) removeContainer(ctx context.Context, id string) error {
	_, err := ask(ctx, op{"remove container", slow}, func(ctx context.Context) (client.ContainerRemoveResult, error) {
		return e.docker.ContainerRemove(ctx, id, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
	})
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}
