package gateway

import (
	"net"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// doorConn is one connection with the name of its door. It counts its bytes, moves them in large
// pieces, and tells those who asked when it closes.
type doorConn struct {
	net.Conn
	door    string
	pull    *puller // nil where the door gives no socket
	rest    []byte  // of pull, not read yet
	reads   int     // up to eagerReads
	send    *outbox
	seen    []byte       // from the client, read ahead by hello
	ciphers []string     // what hello decided to offer
	greeted bool         // our version is out: the library's copy of it stays in
	in, out atomic.Int64 // bytes from and to the guest, encrypted as they are
	guess   [32]byte     // hash of the last wrong link; guard.mu

	mu      sync.Mutex
	closers []func()
	done    bool
}

func newDoorConn(c net.Conn, door string) *doorConn {
	return &doorConn{Conn: c, door: door, pull: newPuller(c), send: newOutbox(c)}
}

// Read counts what comes from the guest.
func (c *doorConn) Read(p []byte) (int, error) {
	if len(c.seen) > 0 {
		n := copy(p, c.seen)
		if c.seen = c.seen[n:]; len(c.seen) == 0 {
			c.seen = nil
		}
		return n, nil
	}
	return c.receive(p)
}

func (c *doorConn) receive(p []byte) (int, error) {
	if c.pull == nil {
		n, err := c.Conn.Read(p)
		c.in.Add(int64(n))
		return n, err
	}
	if len(c.rest) == 0 {
		b, err := c.pull.pull()
		if err != nil {
			return 0, err
		}
		c.in.Add(int64(len(b)))
		c.rest = b
		c.acknowledge()
	}
	n := copy(p, c.rest)
	if c.rest = c.rest[n:]; len(c.rest) == 0 {
		c.pull.release()
	}
	return n, nil
}

// eagerReads is about how many reads a login takes.
const eagerReads = 32

// acknowledge tells the client's kernel at once that its bytes came. During a login OpenSSH
// sends small packets in a row without TCP_NODELAY: its kernel keeps the second back until the
// first is acknowledged, which ours would put off for 40 ms.
func (c *doorConn) acknowledge() {
	if c.reads >= eagerReads {
		return
	}
	c.reads++
	_ = c.pull.raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_QUICKACK, 1) // no TCP, no harm
	})
}

// Write counts what goes to the guest.
func (c *doorConn) Write(p []byte) (int, error) {
	if c.greeted {
		c.greeted = false
		if string(p) == serverVersion {
			return len(p), nil
		}
	}
	n, err := c.send.write(p)
	c.out.Add(int64(n))
	return n, err
}

// Close closes the connection and, the first time, runs what onClose was given.
func (c *doorConn) Close() error {
	err := c.send.close()
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
