package container

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	cerrdefs "github.com/containerd/errdefs"
)

func TestClassify(t *testing.T) {
	for _, c := range []struct {
		err  error
		want error
	}{
		{errors.New("x"), nil},
		{context.Canceled, nil},
		{fmt.Errorf("y: %w", context.DeadlineExceeded), nil},
		{cerrdefs.ErrNotFound, ErrNotFound},
		{cerrdefs.ErrConflict, ErrConflict},
		{cerrdefs.ErrInvalidArgument, ErrInvalid},
		{cerrdefs.ErrUnavailable, ErrUnavailable},
		{errors.New("Error response from daemon: No such image: x:1"), ErrNoImage},
		{errors.New("Error response from daemon: Unknown runtime specified x"), ErrInvalid},
		{errors.New("write /var/lib/docker/x: no space left on device"), ErrNoSpace},
		{errors.New("could not find an available, non-overlapping IPv4 address pool among the defaults to assign to the network"), ErrNoSubnet},
		{errors.New("all predefined address pools have been fully subnetted"), ErrNoSubnet},
		{errors.New("permission denied while trying to connect to the Docker daemon socket"), ErrUnavailable},
		{errors.New("error during connect: EOF"), ErrUnavailable},
	} {
		if got := classify(c.err); !errors.Is(got, c.want) || (c.want == nil && got != nil) {
			t.Errorf("%v: got %v, want %v", c.err, got, c.want)
		}
	}
}

func TestAskIsBounded(t *testing.T) {
	hang := func(ctx context.Context) (int, error) { <-ctx.Done(); return 0, ctx.Err() }
	_, err := ask(t.Context(), op{"wait", time.Millisecond}, hang)
	if !errors.Is(err, ErrUnavailable) {
		t.Errorf("a daemon that hangs: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = ask(ctx, op{"wait", time.Minute}, hang)
	if !errors.Is(err, context.Canceled) || errors.Is(err, ErrUnavailable) {
		t.Errorf("a caller that gave up: %v", err)
	}
}

func TestNoSubnetSaysWhatToDo(t *testing.T) {
	err := wrap("create network", errors.New("all predefined address pools have been fully subnetted"))
	want := `create network: docker has no free network address: end a link, remove unused networks with ` +
		`"docker network prune", or give Docker more with "default-address-pools" in /etc/docker/daemon.json`
	if err.Error() != want {
		t.Errorf("got %s", err)
	}
}
