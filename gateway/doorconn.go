package gateway

import (
	"net"
	"sync"
	"sync/atomic"
)

// doorConn is one connection with the name of its door. It counts its bytes and tells those
// who asked when it closes.
type doorConn struct {
	net.Conn
	door    string
	in, out atomic.Int64 // bytes from and to the guest, encrypted as they are
	guess   [32]byte     // hash of the last wrong link; guard.mu

	mu      sync.Mutex
	closers []func()
	done    bool
}

// Read counts what comes from the guest.
func (c *doorConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.in.Add(int64(n))
	return n, err
}

// Write counts what goes to the guest.
func (c *doorConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.out.Add(int64(n))
	return n, err
}

// Close closes the connection and, the first time, runs what onClose was given.
func (c *doorConn) Close() error {
	err := c.Conn.Close()
	c.mu.Lock()
	closers := c.closers
	c.closers, c.done = nil, true
	c.mu.Unlock()
	for _, fn := range closers {
		fn()
	}
	return err
}

// onClose runs fn when the connection closes, at once if it has.
func (c *doorConn) onClose(fn func()) {
	c.mu.Lock()
	if !c.done {
		c.closers = append(c.closers, fn)
		fn = nil
	}
	c.mu.Unlock()
	if fn != nil {
		fn()
	}
}
