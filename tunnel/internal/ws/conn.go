package ws

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

const (
	// pingEvery keeps a silent WebSocket from being cut by what lies between: proxies are
	// known to end them after 60 to 100 seconds.
	pingEvery = 30 * time.Second
	// stallLimit ends a connection whose other side has read nothing for that long while we
	// had something to say.
	stallLimit = time.Minute
	// farewell is how long a close frame may take.
	farewell = 2 * time.Second
	// maxPayload is the most we put into one frame.
	maxPayload = 128 << 10
)

// frames are buffers of one whole frame.
var frames = sync.Pool{New: func() any { b := make([]byte, 0, maxHeader+maxPayload); return &b }}

// Conn is a WebSocket as a byte stream. Read and Write may be called at the same time.
type Conn struct {
	raw    io.ReadWriteCloser
	client bool
	remote net.Addr
	local  net.Addr
	in     buffer

	// The reader's own.
	h       header
	left    uint64 // of the frame in h
	pos     uint64 // in it
	partial bool   // a message has begun and not ended
	readErr error

	wmu      sync.Mutex // serialises frames
	writeErr error

	dmu      sync.Mutex // taken after wmu
	deadline time.Time  // the caller's for writes

	ping *time.Timer
	once sync.Once
	gone chan struct{}
}

func newConn(raw io.ReadWriteCloser, client bool, ahead []byte) *Conn {
	c := &Conn{raw: raw, client: client, gone: make(chan struct{}), remote: noAddr{}, local: noAddr{}}
	c.in = buffer{src: raw}
	if len(ahead) > 0 {
		c.in.b = append(make([]byte, 0, max(len(ahead), firstBuffer)), ahead...)
		c.in.end = len(ahead)
		c.in.b = c.in.b[:cap(c.in.b)]
	}
	if nc, ok := raw.(net.Conn); ok {
		c.remote, c.local = nc.RemoteAddr(), nc.LocalAddr()
	}
	if !client {
		c.ping = time.AfterFunc(pingEvery, c.sendPing)
	}
	return c
}

// Read returns bytes of messages, of whatever kind and however fragmented. A close frame and
// a clean end of the transport between messages are both io.EOF.
func (c *Conn) Read(p []byte) (int, error) {
	if c.readErr != nil {
		return 0, c.readErr
	}
	n, err := c.read(p)
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		c.readErr = err
		if errors.Is(err, ErrProtocol) {
			c.sendClose(statusProtocol)
		}
	}
	return n, err
}

func (c *Conn) read(p []byte) (int, error) {
	for c.left == 0 {
		if err := c.next(); err != nil {
			return 0, err
		}
	}
	if len(p) == 0 {
		return 0, nil
	}
	if uint64(len(p)) > c.left {
		p = p[:c.left]
	}
	n, err := c.in.read(p)
	if c.h.masked {
		apply(p[:n], c.h.mask, c.pos)
	}
	c.pos += uint64(n)
	c.left -= uint64(n)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// next reads the next header, and deals with a control frame.
func (c *Conn) next() error {
	b, err := c.in.peek(2)
	if err != nil {
		return err
	}
	h, n, need, err := parse(b)
	if err == nil && n == 0 {
		if b, err = c.in.peek(need); err == nil {
			h, n, _, err = parse(b)
		}
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return err
	}
	c.in.skip(n)
	if h.masked == c.client {
		return ErrProtocol
	}
	if h.control() {
		return c.controlFrame(h)
	}
	if (h.op == opContinue) != c.partial {
		return ErrProtocol
	}
	c.partial = !h.fin
	c.h, c.left, c.pos = h, h.length, 0
	return nil
}

func (c *Conn) controlFrame(h header) error {
	b, err := c.in.peek(int(h.length))
	switch {
	case errors.Is(err, io.EOF):
		return io.ErrUnexpectedEOF
	case err != nil:
		return err
	}
	payload := append([]byte(nil), b[:h.length]...)
	c.in.skip(int(h.length))
	if h.masked {
		apply(payload, h.mask, 0)
	}
	switch h.op {
	case opPing:
		return c.frame(opPong, payload)
	case opClose:
		if len(payload) == 1 {
			return ErrProtocol
		}
		c.sendClose(closeCode(payload))
		return io.EOF
	}
	return nil
}

// closeCode is what is echoed: the other side's code, if it may be sent at all.
func closeCode(payload []byte) uint16 {
	if len(payload) < 2 {
		return statusNormal
	}
	code := binary.BigEndian.Uint16(payload)
	switch {
	case code >= 1000 && code <= 1003, code >= 1007 && code <= 1014, code >= 3000 && code <= 4999:
		return code
	}
	return statusProtocol
}

// RemoteAddr is the other side's address.
func (c *Conn) RemoteAddr() net.Addr { return c.remote }

// LocalAddr is ours.
func (c *Conn) LocalAddr() net.Addr { return c.local }

// noAddr stands where the transport does not say.
type noAddr struct{}

// Network is websocket.
func (noAddr) Network() string { return "websocket" }

// String is websocket.
func (noAddr) String() string { return "websocket" }
