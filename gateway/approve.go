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

// claimed notes who a token now belongs to: the link's own token, or a companion's.
func (e *entry) claimed(l link.Link, h link.Hash, g link.Guest) {
	what := "link.claimed"
	if l.Grants[0].Hash != h {
		what = "link.joined"
	}
	e.s.note(Event{Event: what, Link: l.ID, Key: g.Fingerprint, Address: e.conn.RemoteAddr().String()})
}

// awaitApproval tries the claim again whenever the host approves something. The approval binds
// the waiting key by itself, so a guest who is gone by then loses nothing. However it ends
// without one, the connection gets no second wait for its next key.
func (e *entry) awaitApproval(h link.Hash, g link.Guest) (link.Link, bool, error) {
	asked, _, _ := e.s.Book.ByToken(h)
	v := e.s.live(asked.ID)
	if v == nil {
		return link.Link{}, false, errShutdown
	}
	ctx, cancel := context.WithTimeout(e.ctx, approvalTimeout)
	defer cancel()
	ctx, turnAway := context.WithCancelCause(ctx)
	defer v.waiters.add(turnAway)()
	e.s.note(Event{Event: "link.waiting", Link: asked.ID, Key: g.Fingerprint, Address: e.conn.RemoteAddr().String()})
	e.tell("berth: waiting for the host to approve " + g.Fingerprint + " …\n")
	for {
		rung := e.s.approved.wait()
		l, bound, err := e.s.Book.Claim(h, g)
		if !errors.Is(err, link.ErrWaiting) {
			return l, bound, err
		}
		select {
		case <-rung:
			continue
		case <-ctx.Done():
		}
		err = errNotYet
		if errors.Is(context.Cause(ctx), errTurnedAway) {
			err = errTurnedAway
		}
		e.close(err)
		return link.Link{}, false, err
	}
}

// close has every further key on this connection refused as cause.
func (e *entry) close(cause error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.over = cause
}

// waiters are the logins that wait for the host's approval of one link.
type waiters struct {
	mu   sync.Mutex
	all  map[int]context.CancelCauseFunc
	next int
}

// add notes a login that waits; done forgets it.
func (w *waiters) add(turnAway context.CancelCauseFunc) (done func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.all == nil {
		w.all = make(map[int]context.CancelCauseFunc)
	}
	n := w.next
	w.next++
	w.all[n] = turnAway
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.all, n)
		turnAway(nil)
	}
}

// turnAway refuses everyone who waits and returns how many they were.
func (w *waiters) turnAway() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, refuse := range w.all {
		refuse(errTurnedAway)
	}
	return len(w.all)
}

// turnAway refuses the guest who waits for approval, and forgets them if they are gone. It
// returns how many were turned away.
func (v *live) turnAway() int {
	n := v.waiters.turnAway()
	if g, ok := v.s.Book.Pending(v.id); ok {
		v.s.Book.Withdraw(v.id, g)
		n = max(n, 1)
	}
	return n
}
