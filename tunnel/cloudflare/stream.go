package cloudflare

import (
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// stream is one request of the edge, as a transport carries it: its body is read, the answer's
// is written, and each write leaves at once.
type stream interface {
	io.ReadWriter
	// head sends the answer's status and headers, once and first.
	head(status int, h http.Header) error
	SetReadDeadline(t time.Time) error
	SetWriteDeadline(t time.Time) error
}

// Limits on streams whose guest misbehaves.
const (
	// maxJammed is how many streams of one connection may hold bytes that nobody reads. Each
	// keeps its share of the connection's window: with eight of them HTTP/2 would stop for
	// everybody.
	maxJammed   = 5
	jammedAfter = 200 * time.Millisecond
	jamTick     = 100 * time.Millisecond
	// stuckAfter ends a stream on which a write makes no progress, or which nobody reads. A
	// terminal that is paused does not get there: SSH's own window stops it first.
	stuckAfter = time.Minute
)

// streams are those of one connection to the edge: counted, so that the connection can end when
// the last one has, and watched, so that none holds up the others.
type streams struct {
	mu      sync.Mutex
	active  int
	waiting chan struct{} // closed when active is 0; nil unless someone waits
	conns   map[*streamConn]struct{}
	watched bool
}

func newStreams() *streams { return &streams{conns: make(map[*streamConn]struct{})} }

func (s *streams) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.active++
}

func (s *streams) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.active--
	if s.active == 0 && s.waiting != nil {
		close(s.waiting)
		s.waiting = nil
	}
}

// wait returns when no stream is left, or with ctx.
func (s *streams) wait(ctx context.Context) {
	s.mu.Lock()
	if s.active == 0 {
		s.mu.Unlock()
		return
	}
	if s.waiting == nil {
		s.waiting = make(chan struct{})
	}
	done := s.waiting
	s.mu.Unlock()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// add begins to watch c.
func (s *streams) add(c *streamConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns[c] = struct{}{}
	if !s.watched {
		s.watched = true
		go s.watch()
	}
}

func (s *streams) remove(c *streamConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

// watch looks after the streams for as long as there are any.
func (s *streams) watch() {
	tick := time.NewTicker(jamTick)
	defer tick.Stop()
	for now := range tick.C {
		victims, more := s.unfit(now)
		for _, c := range victims {
			c.abort()
		}
		if !more {
			return
		}
	}
}

// unfit lists the streams that have to go. Without any stream the watch ends.
func (s *streams) unfit(now time.Time) (victims []*streamConn, more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.conns) == 0 {
		s.watched = false
		return nil, false
	}
	jammed := 0
	var worst *streamConn
	for c := range s.conns {
		unread := since(now, &c.away)
		if unread > stuckAfter || since(now, &c.busy) > stuckAfter {
			victims = append(victims, c)
			continue
		}
		if unread < jammedAfter {
			continue
		}
		jammed++
		if worst == nil || c.away.Load() < worst.away.Load() {
			worst = c
		}
	}
	if jammed > maxJammed {
		victims = append(victims, worst)
	}
	return victims, true
}

func since(now time.Time, stamp *atomic.Int64) time.Duration {
	if at := stamp.Load(); at != 0 {
		return now.Sub(time.Unix(0, at))
	}
	return 0
}

// streamConn is a net.Conn over a stream whose answer was 101.
type streamConn struct {
	stream
	watched *streams
	once    sync.Once
	closed  chan struct{}

	away atomic.Int64 // since when nobody reads, in nanoseconds; 0 while someone does
	busy atomic.Int64 // since when a write runs; 0 while none does
}

func newStreamConn(s stream, watched *streams) *streamConn {
	c := &streamConn{stream: s, watched: watched, closed: make(chan struct{})}
	c.away.Store(time.Now().UnixNano())
	watched.add(c)
	return c
}

// Read implements net.Conn.
func (c *streamConn) Read(p []byte) (int, error) {
	c.away.Store(0)
	n, err := c.stream.Read(p)
	c.away.Store(time.Now().UnixNano())
	return n, err
}

// Write implements net.Conn. Only one runs at a time.
func (c *streamConn) Write(p []byte) (int, error) {
	c.busy.Store(time.Now().UnixNano())
	n, err := c.stream.Write(p)
	c.busy.Store(0)
	return n, err
}

// Close implements net.Conn: the request has been served.
func (c *streamConn) Close() error {
	c.once.Do(func() {
		c.watched.remove(c)
		close(c.closed)
	})
	return nil
}

// abort makes every read and write fail, so that whoever uses the connection closes it.
func (c *streamConn) abort() {
	past := time.Unix(1, 0)
	_ = c.SetReadDeadline(past)
	_ = c.SetWriteDeadline(past)
	_ = c.Close()
}

// SetDeadline implements net.Conn.
func (c *streamConn) SetDeadline(t time.Time) error {
	if err := c.SetReadDeadline(t); err != nil {
		return err
	}
	return c.SetWriteDeadline(t)
}

// LocalAddr implements net.Conn. There is no address of ours that guests reach.
func (c *streamConn) LocalAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4zero} }

// RemoteAddr implements net.Conn. Whose stream it is the request says.
func (c *streamConn) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4zero} }
