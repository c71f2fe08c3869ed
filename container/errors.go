package container

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/moby/moby/client"
)

// The classes of error that leave this room. Callers branch on them with errors.Is; the
// text behind them is for the log.
var (
	ErrUnavailable = errors.New("docker does not answer")             // dead, stopped, hung, or not permitted to us
	ErrNotFound    = errors.New("no such container")                  // Docker knows none for this link
	ErrNoImage     = errors.New("image is not present")               // and could not be got
	ErrNoSpace     = errors.New("no space left on disk")              // Docker's disk, or the state directory's
	ErrNoSubnet    = errors.New("docker has no free network address") // all of its address pools are used up
	ErrConflict    = errors.New("name is taken in docker")            // by something that is not ours
	ErrInvalid     = errors.New("not possible")                       // this spec can never be run here
	ErrSetup       = errors.New("container could not be set up")      // the agent gave up before it served
)

// noSubnetHint is what to do about ErrNoSubnet; Docker's default pools hold about 30 networks.
const noSubnetHint = `end a link, remove unused networks with "docker network prune", or give Docker more ` +
	`with "default-address-pools" in /etc/docker/daemon.json`

// op is one call to Docker: what it does, for errors, and how long it may take.
type op struct {
	verb  string
	limit time.Duration
}

// How long Docker may take to answer.
const (
	quick = 15 * time.Second // reads
	slow  = 90 * time.Second // what moves files, namespaces or processes
)

// ask runs one call to Docker within its limit and turns its error into a class of ours.
func ask[T any](ctx context.Context, o op, call func(context.Context) (T, error)) (T, error) {
	limited, cancel := context.WithTimeout(ctx, o.limit)
	defer cancel()
	v, err := call(limited)
	if err == nil {
		return v, nil
	}
	if ctx.Err() == nil && limited.Err() != nil {
		return v, fmt.Errorf("%s: %w within %s", o.verb, ErrUnavailable, o.limit)
	}
	return v, wrap(o.verb, err)
}

// wrap says what was being done and puts err into its class.
func wrap(verb string, err error) error {
	class := classify(err)
	switch {
	case class == nil:
		return fmt.Errorf("%s: %w", verb, err)
	case errors.Is(class, ErrNoSubnet):
		return fmt.Errorf("%s: %w: %s", verb, class, noSubnetHint)
	}
	return fmt.Errorf("%s: %w: %w", verb, class, err)
}

// classify finds the class of an error of Docker's client. Docker 20.10 has no codes for a
// full disk, an exhausted pool or an unknown runtime, so those are known by their words.
func classify(err error) error {
	text := strings.ToLower(err.Error())
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return nil // the caller's own doing
	case client.IsErrConnectionFailed(err), cerrdefs.IsUnavailable(err),
		strings.Contains(text, "permission denied while trying to connect"):
		return ErrUnavailable
	case strings.Contains(text, "no space left on device"), strings.Contains(text, "disk quota exceeded"):
		return ErrNoSpace
	case strings.Contains(text, "non-overlapping ipv4 address pool"),
		strings.Contains(text, "predefined address pools have been fully subnetted"):
		return ErrNoSubnet
	case strings.Contains(text, "no such image"):
		return ErrNoImage
	case cerrdefs.IsNotFound(err):
		return ErrNotFound
	case cerrdefs.IsConflict(err):
		return ErrConflict
	case cerrdefs.IsInvalidArgument(err), strings.Contains(text, "unknown runtime"):
		return ErrInvalid
	case strings.HasSuffix(text, "eof"), strings.Contains(text, "connection reset by peer"):
		return ErrUnavailable // the daemon went away in the middle of the call
	}
	return nil
}
