package container

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/moby/moby/api/pkg/stdcopy"
	docker "github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/berth-gpu/berth/container/agent"
)

// setupLimit is how long the agent may take to set its box up: it filters the network and
// makes the guest the owner of their home.
const setupLimit = 60 * time.Second

// Start starts the box of link again, after Docker or the host was restarted, and returns
// when its agent is set up. A box that runs is left alone. Errors are those of Run, or
// ErrNotFound.
func (e *Engine) Start(ctx context.Context, link string) error {
	defer e.lock(link)()
	_, err := e.start(ctx, link)
	return err
}

// start is Start for those who hold the link's lock.
func (e *Engine) start(ctx context.Context, link string) (Box, error) {
	c, err := e.inspect(ctx, link)
	if err != nil {
		return Box{}, fmt.Errorf("start box: %w", err)
	}
	r := lastRun(c)
	if box := boxOf(c); box.Running {
		// Later its log may have been cut; and an agent that cannot set up does not stay.
		if at, err := time.Parse(time.RFC3339Nano, c.State.StartedAt); err == nil && e.now().Sub(at) > setupLimit {
			return box, nil
		}
		return box, e.awaitSetup(ctx, r)
	}
	if err := e.limitNetwork(ctx, link); err != nil {
		return Box{}, fmt.Errorf("start box: %w", err)
	}
	// Once it is set up, the host's addresses are no business of the box's.
	defer func() { _ = removeFile(filepath.Join(e.RunDir(link), path.Base(agent.LimitsPath))) }()
	_, failed := ask(ctx, op{"start container", slow}, func(ctx context.Context) (client.ContainerStartResult, error) {
		return e.docker.ContainerStart(ctx, c.ID, client.ContainerStartOptions{})
	})
	if c, err = e.inspect(ctx, link); err != nil {
		return Box{}, fmt.Errorf("start box: %w", errors.Join(failed, err))
	}
	// Docker may report a failure and have started it; then it runs. Or it ran and ended.
	if failed != nil && !boxOf(c).Running {
		return Box{}, fmt.Errorf("start box: %w", failed)
	}
	if err := e.awaitSetup(ctx, r); err != nil {
		return Box{}, fmt.Errorf("start box: %w", err)
	}
	if c, err = e.inspect(ctx, link); err != nil {
		return Box{}, fmt.Errorf("start box: %w", err)
	}
	if box := boxOf(c); box.Running {
		return box, nil
	}
	return Box{}, fmt.Errorf("start box: %w: it ended at once", ErrSetup)
}

// awaitSetup follows the container's log until the agent says that it is set up. If it ends
// before, the last line it wrote is the reason.
func (e *Engine) awaitSetup(ctx context.Context, r runsAfter) error {
	_, err := ask(ctx, op{"wait for the agent", setupLimit}, func(ctx context.Context) (struct{}, error) {
		logs, err := e.docker.ContainerLogs(ctx, r.id, client.ContainerLogsOptions{
			ShowStderr: true, Follow: true, Since: r.since,
		})
		if err != nil {
			return struct{}{}, err
		}
		defer func() { _ = logs.Close() }()
		return struct{}{}, readSetup(ctx, logs)
	})
	return err
}

// runsAfter tells a container's next run, or the one under way, from those before it.
type runsAfter struct{ id, since string }

// lastRun reads when the last run ended; before a start, or while the container runs. StartedAt
// would not do: Docker takes that time when the agent may have written its line already.
func lastRun(c docker.InspectResponse) runsAfter {
	r := runsAfter{id: c.ID}
	if at, err := time.Parse(time.RFC3339Nano, c.State.FinishedAt); err == nil && at.Year() > 1970 {
		r.since = c.State.FinishedAt
	}
	return r
}

// readSetup reads a container's log in Docker's framing.
func readSetup(ctx context.Context, logs io.Reader) error {
	r, w := io.Pipe()
	defer func() { _ = r.Close() }() // lets the copier go
	go func() {
		_, err := stdcopy.StdCopy(io.Discard, w, logs)
		_ = w.CloseWithError(err)
	}()
	last := "it wrote nothing"
	for lines := bufio.NewScanner(r); lines.Scan(); {
		line := strings.TrimSpace(lines.Text())
		if line == agent.SetUpLine {
			return nil
		}
		if line != "" {
			last = line
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return fmt.Errorf("%w: %s", ErrSetup, last)
}
