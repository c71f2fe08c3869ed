package control_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/berth-gpu/berth/container/agent/screen"
	"github.com/berth-gpu/berth/gateway"
)

func (h *host) Terminals(_ context.Context, ref string) ([]gateway.TerminalView, error) {
	return []gateway.TerminalView{{Link: ref, Number: 2}}, h.err
}

// Watch shows as many pictures as the number of the terminal that was asked for, and then waits.
func (h *host) Watch(ctx context.Context, req gateway.WatchRequest, show func(gateway.Picture) error) error {
	for i := range req.Terminal {
		p := gateway.Picture{Link: req.Ref, Terminal: i + 1, View: screen.View{Cols: 80, Lines: []string{"\x1b[0;31mred\x1b[0m"}}}
		if err := show(p); err != nil {
			return err
		}
	}
	<-ctx.Done()
	h.ended.Store(true)
	return ctx.Err()
}

// TestWatch: pictures arrive as they are made, and the host's side ends with its client.
func TestWatch(t *testing.T) {
	h := new(host)
	c := serve(t, h)
	if all, err := c.Terminals(t.Context(), "abc"); err != nil || len(all) != 1 || all[0].Link != "abc" || all[0].Number != 2 {
		t.Errorf("terminals: %+v, %v", all, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var got []gateway.Picture
	err := c.Watch(ctx, gateway.WatchRequest{Ref: "abc", Terminal: 3}, func(p gateway.Picture) error {
		if got = append(got, p); len(got) == 3 {
			cancel()
		}
		return nil
	})
	if !errors.Is(err, context.Canceled) || len(got) != 3 || got[2].Terminal != 3 || got[0].Lines[0] != "\x1b[0;31mred\x1b[0m" {
		t.Errorf("watched %+v, %v", got, err)
	}
	for !h.ended.Load() {
		select {
		case <-t.Context().Done():
			t.Fatal("the watch goes on without its client")
		case <-time.After(time.Millisecond):
		}
	}
	stop := errors.New("enough")
	if err := c.Watch(t.Context(), gateway.WatchRequest{Terminal: 1}, func(gateway.Picture) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("an error of show came back as %v", err)
	}
	h.err = fmt.Errorf("list: %w", gateway.ErrNoTerminal)
	if _, err := c.Terminals(t.Context(), "x"); !errors.Is(err, gateway.ErrNoTerminal) {
		t.Errorf("no terminal came back as %v", err)
	}
}

// TestWatchEndsWithTheServer: an open watch does not hold up the gateway's end.
func TestWatchEndsWithTheServer(t *testing.T) {
	h := new(host)
	c := serve(t, h) // its clean-up closes the server, and waits for as long as an answer is under way
	seen := make(chan struct{})
	go func() {
		_ = c.Watch(context.Background(), gateway.WatchRequest{Terminal: 1}, func(gateway.Picture) error { close(seen); return nil })
	}()
	<-seen
}
