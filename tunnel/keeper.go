package tunnel

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net"
	"sync"
	"time"
)

// How long a door waits before the next try: a random part of a time that doubles with each
// failure, so that many hosts do not come back to one server in step. A door that stayed up
// for steadyAfter begins anew.
const (
	firstWait   = time.Second
	longestWait = time.Minute
	steadyAfter = time.Minute
)

// keeper keeps one door open. To the gateway it is a listener that lasts.
type keeper struct {
	door    Door
	log     *slog.Logger
	open    net.Listener // given by whoever opened the door before
	conns   chan net.Conn
	ended   chan struct{} // the door is no longer kept
	shut    chan struct{} // the gateway takes no more
	settled chan struct{} // up or failed once
	bytes   counter

	mu     sync.Mutex
	state  State
	cause  error
	since  time.Time
	settle sync.Once
	close  sync.Once
}

func newKeeper(door Door, open net.Listener) *keeper {
	return &keeper{
		door: door, open: open, conns: make(chan net.Conn), ended: make(chan struct{}), shut: make(chan struct{}),
		settled: make(chan struct{}),
		state:   Connecting, since: time.Now(),
	}
}

// run opens the door again and again until ctx ends.
func (k *keeper) run(ctx context.Context) {
	defer close(k.ended)
	wait := firstWait
	for {
		began := time.Now()
		err := k.once(ctx)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > steadyAfter {
			wait = firstWait
		}
		var final *Error
		if errors.As(err, &final) && final.Final {
			<-ctx.Done()
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait/8 + rand.N(wait)): //nolint:gosec // spreads load, hides nothing
		}
		wait = min(2*wait, longestWait)
	}
}

// once opens the door and passes on what comes until it fails. A door that was up and is cut
// counts as connecting until the next try has failed too.
func (k *keeper) once(ctx context.Context) error {
	ln := k.open
	k.open = nil
	if ln == nil {
		var err error
		if ln, err = k.door.Listen(ctx); err != nil {
			k.set(ctx, Down, err)
			return err
		}
	}
	k.set(ctx, Up, nil)
	stop := context.AfterFunc(ctx, func() { _ = ln.Close() })
	err := k.accept(ctx, ln)
	stop()
	_ = k.door.Close()
	_ = ln.Close()
	k.set(ctx, Connecting, err)
	return err
}

func (k *keeper) accept(ctx context.Context, ln net.Listener) error {
	for {
		c, err := ln.Accept()
		if err != nil {
			return err
		}
		select {
		case k.conns <- &countedConn{Conn: c, total: &k.bytes}:
		case <-k.shut:
			_ = c.Close()
		case <-ctx.Done():
			_ = c.Close()
			return ctx.Err()
		}
	}
}

// set notes a state, and logs it where it is news: a door that stays down for the same reason
// does not fill the log.
func (k *keeper) set(ctx context.Context, s State, cause error) {
	k.mu.Lock()
	same := k.state == s && (cause == nil) == (k.cause == nil) && (cause == nil || cause.Error() == k.cause.Error())
	if k.state != s {
		k.since = time.Now()
	}
	k.state, k.cause = s, cause
	k.mu.Unlock()
	if s != Connecting {
		k.settle.Do(func() { close(k.settled) })
	}
	if ctx.Err() != nil {
		return
	}
	var hint string
	var own *Error
	if errors.As(cause, &own) {
		hint = own.Hint
	}
	switch {
	case s == Up:
		k.log.Info("door is up", "at", k.detail())
	case same:
		k.log.Debug("door is still down", "cause", cause)
	case s == Down:
		k.log.Warn("door is down", "cause", cause, "hint", hint)
	default:
		k.log.Warn("door was cut, opening it again", "cause", cause)
	}
}

func (k *keeper) detail() string {
	if d, ok := k.door.(detailed); ok {
		return d.Detail()
	}
	return ""
}

func (k *keeper) status() Status {
	k.mu.Lock()
	st := Status{Name: k.door.Name(), State: k.state, Since: k.since}
	cause := k.cause
	k.mu.Unlock()
	if cause != nil {
		st.Why = cause.Error()
	}
	var own *Error
	if errors.As(cause, &own) {
		st.Hint = own.Hint
	}
	st.Detail = k.detail()
	st.In, st.Out = k.bytes.in.Load(), k.bytes.out.Load()
	return st
}

// Accept returns the next guest, however often the door was opened in between.
func (k *keeper) Accept() (net.Conn, error) {
	select {
	case c := <-k.conns:
		return c, nil
	case <-k.shut:
	case <-k.ended:
	}
	return nil, net.ErrClosed
}

// Close turns away whoever comes from now on. The door itself is closed by Doors: the
// guests inside may need it a little longer.
func (k *keeper) Close() error {
	k.close.Do(func() { close(k.shut) })
	return nil
}

// Addr names the door.
func (k *keeper) Addr() net.Addr { return textAddr(k.door.Name()) }
