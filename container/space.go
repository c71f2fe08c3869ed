package container

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"github.com/moby/moby/client"
)

// FreeDisk is how many bytes a guest could still write where Docker keeps its containers and
// volumes. The error wraps ErrUnavailable when Docker cannot be asked where that is.
func (e *Engine) FreeDisk(ctx context.Context) (int64, error) {
	root, err := e.dockerRoot(ctx)
	if err != nil {
		return 0, err
	}
	return free(root)
}

// dockerRoot is where Docker keeps its things. It is asked once: the answer takes a while on a
// host with many containers.
func (e *Engine) dockerRoot(ctx context.Context) (string, error) {
	e.mu.Lock()
	root := e.root
	e.mu.Unlock()
	if root != "" {
		return root, nil
	}
	r, err := ask(ctx, op{"ask docker for its directory", quick}, func(ctx context.Context) (client.SystemInfoResult, error) {
		return e.docker.Info(ctx, client.InfoOptions{})
	})
	e.mu.Lock()
	defer e.mu.Unlock()
	e.root = r.Info.DockerRootDir
	return e.root, err
}

// checkSpace refuses to begin what a full disk would leave half done.
func (e *Engine) checkSpace(ctx context.Context) error {
	root, err := e.dockerRoot(ctx)
	if err != nil {
		return err
	}
	for _, dir := range []string{root, e.dir} {
		n, err := free(dir)
		if err != nil {
			continue // Docker may be on another machine, or in a directory that we may not see
		}
		if n < minFree {
			return fmt.Errorf("%w: %s has %s free", ErrNoSpace, dir, humanBytes(n))
		}
	}
	return nil
}

func free(dir string) (int64, error) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return 0, fmt.Errorf("read free space of %s: %w", dir, err)
	}
	return int64(st.Bavail) * st.Bsize, nil
}

// spaceClass marks an error of the file system that means a full disk.
func spaceClass(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("%w: %w", ErrNoSpace, err)
	}
	return err
}
