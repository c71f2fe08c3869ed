package tunnel

import (
	"errors"
	"net"
	"sync/atomic"
	"syscall"
)

// counter is what went through a door.
type counter struct{ in, out atomic.Int64 }

// countedConn adds its bytes to its door's.
type countedConn struct {
	net.Conn
	total *counter
}

// Read counts what comes from the guest.
func (c *countedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.total.in.Add(int64(n))
	return n, err
}

// Write counts what goes to the guest.
func (c *countedConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.total.out.Add(int64(n))
	return n, err
}

// SyscallConn lets the gateway wait for bytes without holding a buffer for them. It fails
// where the door's connection is no socket.
func (c *countedConn) SyscallConn() (syscall.RawConn, error) {
	sc, ok := c.Conn.(syscall.Conn)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	return sc.SyscallConn()
}
