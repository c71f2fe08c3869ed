package gateway

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/berth-gpu/berth/gateway/link"
)

// approvalTimeout is how long a guest's login waits for the host. It ends well before the
// handshake does and before editors give up.
const approvalTimeout = 12 * time.Second

// bell wakes everyone who waits on it.
type bell struct {
	mu sync.Mutex
	ch chan struct{}
}

func (b *bell) wait() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch == nil {
		b.ch = make(chan struct{})
	}
	return b.ch
}

func (b *bell) wake() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch != nil {
		close(b.ch)
		b.ch = nil
	}
}

// waiting notes that g wants in and the host has to say so.
func (s *Server) waiting(l link.Link, g link.Guest, c *doorConn) {
	s.note(Event{Event: "link.waiting", Link: l.ID, Key: g.Fingerprint, Address: c.RemoteAddr().String()})
}

// claimed notes a link's first use.
func (s *Server) claimed(l link.Link, g link.Guest, c *doorConn) {
	s.note(Event{Event: "link.claimed", Link: l.ID, Key: g.Fingerprint, Address: c.RemoteAddr().String()})
}

// awaitApproval tries the claim again whenever the host approves something. The approval binds
// the waiting key by itself, so a guest who is gone by then loses nothing.
func (s *Server) awaitApproval(ctx context.Context, h link.Hash, g link.Guest) (link.Link, error) {
	ctx, cancel := context.WithTimeout(ctx, approvalTimeout)
	defer cancel()
	for {
		rung := s.approved.wait()
		l, err := s.Book.Claim(h, g)
		if !errors.Is(err, link.ErrWaiting) {
			return l, err
		}
		select {
		case <-rung:
		case <-ctx.Done():
			return link.Link{}, link.ErrWaiting
		}
	}
}
