package tunneltest

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// faulty is the edge's end of a TCP connection with faults on demand, below TLS.
type faulty struct {
	net.Conn
	mu       sync.Mutex
	cond     *sync.Cond
	stalled  bool // neither reads nor writes
	halfOpen bool // the other side sees silence; what it sends is taken and lost
	perSec   int  // bytes a second, 0 for no limit
	closed   bool
	ended    chan struct{}
}

func newFaulty(c net.Conn) *faulty {
	f := &faulty{Conn: c, ended: make(chan struct{})}
	f.cond = sync.NewCond(&f.mu)
	return f
}

func (f *faulty) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
	f.cond.Broadcast()
}

// gate waits while the connection is stalled and says how to go on.
func (f *faulty) gate() (halfOpen bool, perSec int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.stalled && !f.closed {
		f.cond.Wait()
	}
	if f.closed {
		return false, 0, net.ErrClosed
	}
	return f.halfOpen, f.perSec, nil
}

// Read implements net.Conn.
func (f *faulty) Read(p []byte) (int, error) {
	for {
		_, perSec, err := f.gate()
		if err != nil {
			return 0, err
		}
		if perSec > 0 {
			p = p[:min(len(p), max(1, perSec/20))]
		}
		n, err := f.Conn.Read(p)
		halfOpen, _, closed := f.gate()
		if closed != nil {
			return 0, closed
		}
		if halfOpen && err == nil {
			continue
		}
		f.pace(n, perSec)
		return n, err
	}
}

// Write implements net.Conn.
func (f *faulty) Write(p []byte) (int, error) {
	done := 0
	for done < len(p) {
		halfOpen, perSec, err := f.gate()
		if err != nil {
			return done, err
		}
		if halfOpen {
			return len(p), nil
		}
		part := p[done:]
		if perSec > 0 {
			part = part[:min(len(part), max(1, perSec/20))]
		}
		n, err := f.Conn.Write(part)
		done += n
		if err != nil {
			return done, err
		}
		f.pace(n, perSec)
	}
	return done, nil
}

// pace waits for as long as n bytes take.
func (f *faulty) pace(n, perSec int) {
	if perSec <= 0 || n <= 0 {
		return
	}
	timer := time.NewTimer(time.Duration(n) * time.Second / time.Duration(perSec))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-f.ended:
	}
}

// Close implements net.Conn. It frees whoever waits at the gate.
func (f *faulty) Close() error {
	f.mu.Lock()
	if !f.closed {
		f.closed = true
		close(f.ended)
	}
	f.cond.Broadcast()
	f.mu.Unlock()
	return f.Conn.Close()
}

// lossyPackets is the edge's UDP socket; while block is set, every packet is lost.
type lossyPackets struct {
	net.PacketConn
	block atomic.Bool
}

// ReadFrom implements net.PacketConn.
func (l *lossyPackets) ReadFrom(p []byte) (int, net.Addr, error) {
	for {
		n, from, err := l.PacketConn.ReadFrom(p)
		if err != nil || !l.block.Load() {
			return n, from, err
		}
	}
}

// WriteTo implements net.PacketConn.
func (l *lossyPackets) WriteTo(p []byte, to net.Addr) (int, error) {
	if l.block.Load() {
		return len(p), nil
	}
	return l.PacketConn.WriteTo(p, to)
}
