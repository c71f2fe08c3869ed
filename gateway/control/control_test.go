package control_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/berth-gpu/berth/container"
	"github.com/berth-gpu/berth/gateway"
	"github.com/berth-gpu/berth/gateway/control"
	"github.com/berth-gpu/berth/gateway/link"
)

// host answers with what the test put in it and remembers what it was asked.
type host struct {
	err   error
	asked string
	ended atomic.Bool
}

func (h *host) Share(ctx context.Context, req gateway.ShareRequest) (gateway.ShareResult, error) {
	gateway.Progress(ctx)("pulling " + req.Terms.Image)
	return gateway.ShareResult{Token: "tok", Link: gateway.LinkView{Name: req.Name}}, h.err
}

func (h *host) List(context.Context) ([]gateway.LinkView, error) { return []gateway.LinkView{}, h.err }

func (h *host) Show(_ context.Context, ref string) (gateway.LinkView, error) {
	return gateway.LinkView{ID: ref}, h.err
}

func (h *host) Revoke(_ context.Context, ref string) (gateway.LinkView, error) {
	return gateway.LinkView{ID: ref, State: link.Ended}, h.err
}

func (h *host) Extend(_ context.Context, ref string, by time.Duration) (gateway.LinkView, error) {
	h.asked = by.String()
	return gateway.LinkView{ID: ref}, h.err
}

func (h *host) Kick(context.Context, string) (int, error) { return 3, h.err }

func (h *host) Approve(_ context.Context, ref string) (gateway.LinkView, error) {
	return gateway.LinkView{ID: ref}, h.err
}

func (h *host) Receipts(context.Context) ([]gateway.Receipt, error) {
	return []gateway.Receipt{{Link: "a", Items: []container.Item{{Name: "container", OK: true}}}}, h.err
}

func (h *host) Events(_ context.Context, n int) ([]gateway.Event, error) {
	return make([]gateway.Event, n), h.err
}

func (h *host) ListDoors(context.Context) ([]gateway.DoorState, error) {
	return []gateway.DoorState{{Name: "direct", State: "up", BytesOut: 7}}, h.err
}

func (h *host) Overview(_ context.Context, o gateway.OverviewOptions) (gateway.Overview, error) {
	return gateway.Overview{Host: "here", Events: make([]gateway.Event, o.Events)}, h.err
}

// serve runs a server on a directory whose path is longer than a socket's name may be.
func serve(t *testing.T, h *host) *control.Client {
	t.Helper()
	dir := filepath.Join(t.TempDir(), strings.Repeat("long", 30))
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	srv := &control.Server{Dir: dir, Host: h}
	ln, err := srv.Listen()
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(ln) }()
	t.Cleanup(func() {
		if err := srv.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(filepath.Join(dir, control.SocketName)); !os.IsNotExist(err) {
			t.Errorf("the socket is still there: %v", err)
		}
	})
	return &control.Client{Dir: dir}
}

func TestVerbs(t *testing.T) {
	h := new(host)
	c := serve(t, h)
	ctx := t.Context()
	var progress []string
	c.Progress = func(line string) { progress = append(progress, line) }
	res, err := c.Share(ctx, gateway.ShareRequest{Name: "n", Terms: link.Terms{Image: "img"}})
	if err != nil || res.Token != "tok" || res.Link.Name != "n" || fmt.Sprint(progress) != "[pulling img]" {
		t.Errorf("share: %+v, %v, progress %v", res, err, progress)
	}
	if all, err := c.List(ctx); err != nil || all == nil || len(all) != 0 {
		t.Errorf("list: %v, %v", all, err)
	}
	if v, err := c.Extend(ctx, "abc", 90*time.Minute); err != nil || v.ID != "abc" || h.asked != "1h30m0s" {
		t.Errorf("extend: %+v, %v, asked for %s", v, err, h.asked)
	}
	if n, err := c.Kick(ctx, "abc"); err != nil || n != 3 {
		t.Errorf("kick: %d, %v", n, err)
	}
	if v, err := c.Revoke(ctx, "abc"); err != nil || v.State != link.Ended {
		t.Errorf("revoke: %+v, %v", v, err)
	}
	if e, err := c.Events(ctx, 2); err != nil || len(e) != 2 {
		t.Errorf("events: %v, %v", e, err)
	}
	if o, err := c.Overview(ctx, gateway.OverviewOptions{Events: 3}); err != nil || o.Host != "here" || len(o.Events) != 3 {
		t.Errorf("overview: %+v, %v", o, err)
	}
	if r, err := c.Receipts(ctx); err != nil || len(r) != 1 || !r[0].Items[0].OK {
		t.Errorf("receipts: %v, %v", r, err)
	}
}

func TestErrorsKeepTheirClass(t *testing.T) {
	h := new(host)
	c := serve(t, h)
	for _, class := range []error{
		link.ErrUnknown, link.ErrAmbiguous, link.ErrTooLong, link.ErrDurable,
		container.ErrUnavailable, container.ErrNoImage, container.ErrNoSpace, container.ErrInvalid,
	} {
		h.err = fmt.Errorf("show: %w", class)
		_, err := c.Show(t.Context(), "x")
		if !errors.Is(err, class) || err.Error() != h.err.Error() {
			t.Errorf("%v came back as %v", h.err, err)
		}
	}
	h.err = &link.EndedError{Reason: link.Revoked}
	if _, err := c.Show(t.Context(), "x"); !errors.Is(err, link.ErrEnded) || errors.Is(err, link.ErrExpired) {
		t.Errorf("a revoked link came back as %v", err)
	}
}

func TestNobodyThere(t *testing.T) {
	dir := t.TempDir()
	if _, err := (&control.Client{Dir: dir}).List(t.Context()); !errors.Is(err, control.ErrNotRunning) {
		t.Errorf("an empty directory: %v", err)
	}
	if _, err := (&control.Client{Dir: dir + "/none"}).List(t.Context()); !errors.Is(err, control.ErrNotRunning) {
		t.Errorf("no directory: %v", err)
	}
	srv := &control.Server{Dir: dir}
	ln, err := srv.Listen()
	if err != nil {
		t.Fatal(err)
	}
	_ = ln.Close() // as after kill -9: the socket is there, nobody listens
	if _, err := (&control.Client{Dir: dir}).List(t.Context()); !errors.Is(err, control.ErrNotRunning) {
		t.Errorf("a leftover socket: %v", err)
	}
	if st, err := os.Stat(filepath.Join(dir, control.SocketName)); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("the socket: %v, %v", st, err)
	}
}
