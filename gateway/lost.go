package gateway

import (
	"slices"
	"sync"
	"time"

	gossh "golang.org/x/crypto/ssh"
)

// probeTimeout is how long a client may take to answer before the same guest's next login counts
// it as lost. Through a frozen network nothing says that it is gone, and the guest who comes back
// wants the screen they left, not a new shell.
const probeTimeout = 2 * time.Second

// lost asks the other clients of this guest that have a terminal for a sign of life, all at once.
// It closes those that give none and returns what the agent calls their terminals' channels.
func (v *live) lost(me *session) []uint64 {
	v.mu.Lock()
	ids := slices.Clone(v.left)
	v.mu.Unlock()
	var mu sync.Mutex
	var asked sync.WaitGroup
	for _, sess := range v.list() {
		if sess == me || sess.owner() != me.owner() {
			continue
		}
		conn, shown := sess.terminals()
		if conn == nil {
			continue
		}
		asked.Go(func() {
			if answers(conn, probeTimeout) {
				return
			}
			mu.Lock()
			ids = append(ids, shown...)
			mu.Unlock()
			_ = sess.conn.Close()
		})
	}
	asked.Wait()
	return ids
}

// maxLeft is how many departures are remembered; the agent notices them by itself in a moment.
const maxLeft = 32

// leftTerminal remembers that the client of this terminal's channel is gone: the agent may not have
// noticed when the guest's next login asks for the terminal.
func (v *live) leftTerminal(id uint64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.left = append(v.left, id)
	v.left = v.left[max(0, len(v.left)-maxLeft):]
}

// terminals returns the session's connection and what the agent calls its terminals' channels; nil
// where it has none.
func (x *session) terminals() (*gossh.ServerConn, []uint64) {
	var conn *gossh.ServerConn
	var ids []uint64
	for _, c := range x.all() {
		c.mu.Lock()
		if c.terminal {
			conn = c.conn
			ids = append(ids, c.proc.ID())
		}
		c.mu.Unlock()
	}
	return conn, ids
}

// answers reports whether the client answers within d. Any answer will do, also a refusal.
func answers(conn *gossh.ServerConn, d time.Duration) bool {
	answered := make(chan error, 1)
	go func() {
		_, _, err := conn.SendRequest("keepalive@openssh.com", true, nil)
		answered <- err
	}()
	select {
	case err := <-answered:
		return err == nil
	case <-time.After(d):
		return false
	}
}
