package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// listeners are the sockets that listen inside the container for the gateway, and the
// connections that wait there for a stream of the gateway's.
type listeners struct {
	mu      sync.Mutex
	open    map[uint64]net.Listener // by the request that made it
	waiting map[uint64]net.Conn     // by the number we gave it
	last    uint64
}

// maxWaiting bounds the connections that the gateway has not taken yet.
const maxWaiting = 256

// takeTimeout is how long an accepted connection waits for the gateway to take it.
const takeTimeout = 20 * time.Second

// listen starts to listen for f. A unix socket with an empty address is made in a private
// directory of its own, for the guest alone.
func (s *server) listen(ctx context.Context, f *Frame) error {
	if f.Dial == nil {
		return fmt.Errorf("%w: listen", ErrFrame)
	}
	ln, err := open(ctx, f.Dial)
	if err != nil {
		return err
	}
	s.listeners.mu.Lock()
	s.listeners.open[f.ID] = ln
	s.listeners.mu.Unlock()
	s.send(&Frame{Op: OpStarted, ID: f.ID, Dial: &Dial{Network: f.Dial.Network, Address: ln.Addr().String()}})
	go s.accept(f.ID, ln)
	return nil
}

func open(ctx context.Context, d *Dial) (net.Listener, error) {
	switch {
	case d.Network == "tcp":
		return (&net.ListenConfig{}).Listen(ctx, "tcp", d.Address)
	case d.Network == "unix" && d.Address != "":
		return listenUnix(ctx, d.Address)
	case d.Network == "unix":
		dir, err := os.MkdirTemp("", "berth-")
		if err != nil {
			return nil, err
		}
		ln, err := listenUnix(ctx, filepath.Join(dir, "agent"))
		if err != nil {
			return nil, errors.Join(err, os.Remove(dir))
		}
		return privateListener{ln, dir}, nil
	}
	return nil, fmt.Errorf("%w: network %q", ErrFrame, d.Network)
}

// listenUnix makes a socket that only the guest can use. A path that exists is refused, as
// sshd does by default (StreamLocalBindUnlink no).
func listenUnix(ctx context.Context, path string) (net.Listener, error) {
	ln, err := (&net.ListenConfig{}).Listen(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		_ = ln.Close()
		return nil, err
	}
	return ln, nil
}

// privateListener takes its directory with it.
type privateListener struct {
	net.Listener
	dir string
}

// Close stops listening and removes the directory.
func (l privateListener) Close() error {
	return errors.Join(l.Listener.Close(), os.Remove(l.dir))
}

// accept offers each connection to the gateway, which answers with a stream or not at all.
func (s *server) accept(id uint64, ln net.Listener) {
	for {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		n, ok := s.listeners.keep(c)
		if !ok {
			_ = c.Close()
			continue
		}
		s.send(&Frame{Op: OpAccepted, ID: id, Conn: n, Dial: &Dial{Network: c.RemoteAddr().Network(), Address: c.RemoteAddr().String()}})
		time.AfterFunc(takeTimeout, func() { s.dropWaiting(n) })
	}
}

func (l *listeners) keep(c net.Conn) (uint64, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) >= maxWaiting {
		return 0, false
	}
	l.last++
	l.waiting[l.last] = c
	return l.last, true
}

func (l *listeners) take(n uint64) net.Conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.waiting[n]
	delete(l.waiting, n)
	return c
}

// takeConn joins a waiting connection to the stream that came with f; without a stream it is
// turned away.
func (s *server) takeConn(f *Frame) {
	far := s.listeners.take(f.Conn)
	if far == nil || len(f.Files) != 1 {
		closeAll(f.Files)
		if far != nil {
			_ = far.Close()
		}
		return
	}
	near, err := streamConn(f.Files[0])
	if err != nil {
		_ = far.Close()
		return
	}
	go bridge(near, far)
}

func (s *server) dropWaiting(n uint64) {
	if c := s.listeners.take(n); c != nil {
		_ = c.Close()
	}
}

// unlisten closes what the request f.ID opened.
func (s *server) unlisten(f *Frame) {
	s.listeners.mu.Lock()
	ln := s.listeners.open[f.ID]
	delete(s.listeners.open, f.ID)
	s.listeners.mu.Unlock()
	if ln != nil {
		_ = ln.Close()
	}
}

// unlistenAll closes every listener: the gateway they belonged to is gone, and a port that
// accepts and never answers is worse than none.
func (s *server) unlistenAll() {
	s.listeners.mu.Lock()
	open := s.listeners.open
	s.listeners.open = make(map[uint64]net.Listener)
	s.listeners.mu.Unlock()
	for _, ln := range open {
		_ = ln.Close()
	}
}
