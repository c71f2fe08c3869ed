package gateway_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	gossh "golang.org/x/crypto/ssh"

	"github.com/berth-gpu/berth/gateway"
	"github.com/berth-gpu/berth/gateway/gatewaytest"
	"github.com/berth-gpu/berth/gateway/link"
)

// spectator is a host who watches.
type spectator struct {
	mu   sync.Mutex
	last gateway.Picture
	stop context.CancelFunc
	done chan error
}

func spectate(t *testing.T, g *gatewaytest.Gateway, req gateway.WatchRequest) *spectator {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	s := &spectator{stop: stop, done: make(chan error, 1)}
	go func() {
		s.done <- g.Watch(ctx, req, func(p gateway.Picture) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.last = p
			return nil
		})
	}()
	t.Cleanup(stop)
	return s
}

func (s *spectator) picture() gateway.Picture {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

func (s *spectator) shows(t *testing.T, want string) {
	t.Helper()
	gatewaytest.Eventually(t, "the host sees "+want, func() bool { return strings.Contains(strings.Join(s.picture().Lines, "\n"), want) })
}

func TestWatch(t *testing.T) {
	g := gatewaytest.Start(t)
	res := g.Share(link.Terms{})
	id := res.Link.ID
	if err := g.Watch(t.Context(), gateway.WatchRequest{Ref: id}, nil); !errors.Is(err, gateway.ErrNoTerminal) {
		t.Errorf("nothing to watch: %v", err)
	}
	guest := &gatewaytest.Guest{Token: res.Token, Keys: []gossh.Signer{gatewaytest.NewKey(t)}}
	client, err := g.Dial(guest)
	if err != nil {
		t.Fatal(err)
	}
	s := shell(t, client)
	s.types(t, "PS1='> '; printf '\\033]2;ti\\001tle\\007\\033[31mred%s\\033[m\\n' thing\n")
	s.shows(t, "redthing")
	one, two := spectate(t, g, gateway.WatchRequest{Ref: id}), spectate(t, g, gateway.WatchRequest{Ref: id, Terminal: 1})
	one.shows(t, "\x1b[0;31mredthing\x1b[0m")
	two.shows(t, "redthing")
	s.shows(t, "the host is watching this terminal")
	if p := one.picture(); p.Cols != 80 || p.Rows != 24 || p.Link != id || p.Terminal != 1 || p.Title != "title" {
		t.Errorf("picture of %+v", p)
	}
	all, err := g.Terminals(t.Context(), id)
	if err != nil || len(all) != 1 || all[0].Number != 1 || len(all[0].Sessions) != 1 || all[0].Left != nil || all[0].Watchers != 2 {
		t.Fatalf("terminals: %+v, %v", all, err)
	}
	if again, err := g.Terminals(t.Context(), all[0].Sessions[0]); err != nil || len(again) != 1 {
		t.Errorf("terminals of the session: %+v, %v", again, err)
	}
	if err := s.sess.WindowChange(10, 50); err != nil {
		t.Fatal(err)
	}
	gatewaytest.Eventually(t, "the host sees the new size", func() bool { return one.picture().Cols == 50 && one.picture().Rows == 10 })
	one.stop()
	two.stop()
	if err := <-one.done; !errors.Is(err, context.Canceled) {
		t.Errorf("the first ended with %v", err)
	}
	s.shows(t, "the host no longer watches")
	three := spectate(t, g, gateway.WatchRequest{Ref: all[0].Sessions[0]})
	three.shows(t, "no longer watches")
	s.types(t, "exit\n")
	if err := <-three.done; err != nil {
		t.Errorf("at the terminal's end the watch returned %v", err)
	}
	if strings.Contains(g.Log.String(), "panic") {
		t.Error(g.Log)
	}
}

// TestWatchGoesOnWhileTheGuestIsAway: a terminal that waits can be looked at too.
func TestWatchGoesOnWhileTheGuestIsAway(t *testing.T) {
	g := gatewaytest.Start(t)
	res := g.Share(link.Terms{})
	guest := &gatewaytest.Guest{Token: res.Token, Keys: []gossh.Signer{gatewaytest.NewKey(t)}}
	client, err := g.Dial(guest)
	if err != nil {
		t.Fatal(err)
	}
	s := shell(t, client)
	s.types(t, "while ! [ -e go ]; do sleep 0.1; done; echo went-$((1+1)); cat\n")
	s.shows(t, "while")
	w := spectate(t, g, gateway.WatchRequest{Ref: res.Link.ID})
	w.shows(t, "while")
	_ = client.Conn.Close()
	noSessions(t, g, res.Link.ID)
	all, err := g.Terminals(t.Context(), res.Link.ID)
	if err != nil || len(all) != 1 || all[0].Left == nil || len(all[0].Sessions) != 0 {
		t.Errorf("terminals: %+v, %v", all, err)
	}
	if out, err := run(g, guest, "touch go"); err != nil {
		t.Fatal(err, out)
	}
	w.shows(t, "went-2")
}
