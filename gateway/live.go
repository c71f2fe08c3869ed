package gateway

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/berth-gpu/berth/container"
	"github.com/berth-gpu/berth/container/agent"
	"github.com/berth-gpu/berth/gateway/link"
)

// live is what runs for a link that has not ended: its container's agent and its sessions.
type live struct {
	s    *Server
	id   string
	stop context.CancelFunc // ends keep
	kept chan struct{}      // closed when keep has returned

	bell    bell // rung when state, agent or sessions change
	waiters waiters

	mu       sync.Mutex
	agent    *container.Agent // nil until its socket is made
	state    string           // as LinkView.Container
	failure  error            // of the last attempt to bring the container up
	sessions map[string]*session
	closed   bool
	warned   time.Duration // the last warning given, see warnAt
	left     []uint64      // the newest terminal channels whose client went away
	watchers map[int]int   // how many of the host's look at each terminal, by its number
}

// Container states of a LinkView.
const (
	boxStarting = "starting"
	boxReady    = "ready"
	boxStopped  = "stopped"
	boxCleaning = "cleaning"
	boxGone     = "gone"
)

// live returns what runs for a link, and takes it up if nothing does yet; nil when the
// gateway is stopping or the link has no place on disk.
func (s *Server) live(id string) *live {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v := s.lives[id]; v != nil {
		return v
	}
	if s.ctx.Err() != nil {
		return nil
	}
	v := &live{s: s, id: id, state: boxStarting, sessions: make(map[string]*session), kept: make(chan struct{})}
	ctx, stop := context.WithCancel(s.ctx)
	v.stop = stop
	s.lives[id] = v
	s.work.Go(func() {
		defer close(v.kept)
		s.guarded("link "+id, func() { v.keep(ctx) })
	})
	return v
}

// snapshot returns everything that runs, without holding a lock on it.
func (s *Server) snapshot() []*live {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*live, 0, len(s.lives))
	for _, v := range s.lives {
		all = append(all, v)
	}
	return all
}

// find returns what runs for a link without taking it up.
func (s *Server) find(id string) *live {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lives[id]
}

// How long a lost container waits before it is looked at again.
const (
	minRetry = time.Second
	maxRetry = 30 * time.Second
)

// keep has the link's container running, for as long as the link lives: it takes up one that
// is there, starts one that stopped, and makes one that is missing.
func (v *live) keep(ctx context.Context) {
	wait := minRetry
	for ctx.Err() == nil {
		began := v.s.Now()
		err := v.hold(ctx)
		if ctx.Err() != nil {
			return
		}
		if v.s.Now().Sub(began) > maxRetry {
			wait = minRetry
		}
		v.setState(stateAfter(err), err)
		v.s.Log.Warn("container lost", "link", v.id, "cause", err, "again", wait)
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
		wait = min(2*wait, maxRetry)
	}
}

func stateAfter(err error) string {
	switch {
	case errors.Is(err, container.ErrUnavailable):
		return boxStopped + ": docker does not answer"
	case err != nil:
		return "failed: " + err.Error()
	default:
		return boxStopped
	}
}

// hold brings the container up and returns when its agent is gone.
func (v *live) hold(ctx context.Context) error {
	if err := v.bringUp(ctx); err != nil {
		return err
	}
	v.setState(boxReady, nil)
	select {
	case <-ctx.Done():
	case <-v.connected().Gone():
	}
	return nil
}

func (v *live) connected() *container.Agent {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.agent
}

// close lets go of the agent; the container stays.
func (v *live) close() {
	v.mu.Lock()
	v.closed = true
	a := v.agent
	v.mu.Unlock()
	if a != nil {
		a.Close()
	}
}

// bringUp makes sure that the container runs and its agent is connected.
func (v *live) bringUp(ctx context.Context) error {
	if err := v.listen(); err != nil {
		return err
	}
	box, err := v.s.Boxes.Box(ctx, v.id)
	switch {
	case errors.Is(err, container.ErrNotFound):
		box, err = v.make(ctx)
	case err == nil && !box.Running:
		if err = v.s.Boxes.Start(ctx, v.id); err == nil {
			box, err = v.s.Boxes.Box(ctx, v.id)
		}
	}
	if err != nil {
		return err
	}
	a := v.connected()
	a.Expect(box.PID)
	ctx, cancel := context.WithTimeout(ctx, agentTimeout)
	defer cancel()
	if _, err = a.Ready(ctx); err != nil {
		return fmt.Errorf("wait for agent: %w", err)
	}
	return nil
}

// agentTimeout is how long a started container may take until its agent is connected.
const agentTimeout = 30 * time.Second

func (v *live) make(ctx context.Context) (container.Box, error) {
	l, ok := v.s.Book.Get(v.id)
	if !ok || l.State == link.Ended {
		return container.Box{}, link.ErrEnded
	}
	return v.s.Boxes.Run(ctx, specOf(l))
}

// listen makes the agent's socket. It has to be there before the container starts.
func (v *live) listen() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.closed {
		return errShutdown
	}
	if v.agent != nil {
		return nil
	}
	a, err := container.ListenAgent(container.AgentOptions{Dir: v.s.Boxes.RunDir(v.id), Log: v.s.Log, OnCall: v.call})
	if err != nil {
		return err
	}
	v.agent = a
	v.bell.wake()
	return nil
}

func specOf(l link.Link) container.Spec {
	t := l.Terms
	spec := container.Spec{
		Link: l.ID, Image: t.Image, CPUs: t.CPUs, Memory: t.Memory, SHM: t.SHM, PIDs: t.PIDs,
		Network: container.Network(t.Network), Workspace: t.Workspace,
		Root: t.Root, Writable: t.Writable, Runtime: t.Runtime,
	}
	for _, m := range t.Mounts {
		spec.Mounts = append(spec.Mounts, container.Mount{Source: m.Source, Target: m.Target, Write: m.Write})
	}
	return spec
}

// readyTimeout is how long a guest waits for a container that is only just coming up.
const readyTimeout = 5 * time.Second

// ready returns the connected agent.
func (v *live) ready(ctx context.Context) (*container.Agent, error) {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	for {
		changed := v.bell.wait()
		a := v.connected()
		if a != nil {
			if _, err := a.Ready(ctx); err != nil {
				return nil, fmt.Errorf("%w: %w", errNotReady, err)
			}
			return a, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, errNotReady
		}
	}
}

// settled waits until the first attempt to bring the container up is through and returns why
// it failed.
func (v *live) settled(ctx context.Context) error {
	for {
		changed := v.bell.wait()
		v.mu.Lock()
		state, err := v.state, v.failure
		v.mu.Unlock()
		if state != boxStarting {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (v *live) setState(state string, failure error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.state, v.failure = state, failure
	v.bell.wake()
}

// leaving is how long a login waits for a place whose connection was closed a moment ago: the
// next command of a script is often here before the last one's end is.
const leaving = 500 * time.Millisecond

// admit takes a place for a session once there is one.
func (v *live) admit(ctx context.Context, sess *session, limit int) error {
	ctx, cancel := context.WithTimeout(ctx, leaving)
	defer cancel()
	for {
		changed := v.bell.wait()
		err := v.add(sess, limit)
		if !errors.Is(err, errFull) && !errors.Is(err, errBusy) {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return err
		}
	}
}

// add takes a place for a session, within the link's limit. A guest without a key has one
// connection at a time on each of their tokens.
func (v *live) add(sess *session, limit int) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.closed {
		return errShutdown
	}
	if limit > 0 && len(v.sessions) >= limit {
		return errFull
	}
	for _, other := range v.sessions {
		if sess.guest.Fingerprint == link.NoKey && other.grant == sess.grant {
			return errBusy
		}
	}
	v.sessions[sess.id] = sess
	return nil
}

func (v *live) drop(sess *session) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.sessions, sess.id)
	v.bell.wake()
}

func (v *live) list() []*session {
	v.mu.Lock()
	defer v.mu.Unlock()
	all := make([]*session, 0, len(v.sessions))
	for _, sess := range v.sessions {
		all = append(all, sess)
	}
	return all
}

// closeSessions tells every session why and closes it; it returns how many there were.
func (v *live) closeSessions(why string) int {
	all := v.list()
	var closing sync.WaitGroup
	for _, sess := range all {
		closing.Go(func() { sess.close(why) })
	}
	closing.Wait()
	return len(all)
}

// call answers the guest's `berth` command.
func (v *live) call(ctx context.Context, c agent.Call) agent.Reply {
	text, err := v.s.guestVerb(ctx, v, c.Verb)
	if err != nil {
		return agent.Reply{Error: err.Error()}
	}
	return agent.Reply{Text: text}
}
