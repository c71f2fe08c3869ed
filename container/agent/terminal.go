package agent

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"
)

// keepBytes is how much of a terminal's last output is kept for the guest's return.
const keepBytes = 256 << 10

// maxDetached is how many terminals may wait for their guest; the oldest is hung up beyond it.
const maxDetached = 32

// terminal is a pty, its leader, and at most one viewer: the guest's session. It outlives
// the session, so that a cut network loses nothing.
type terminal struct {
	pty   *pty
	child child

	gone chan struct{} // closed when the leader has ended
	exit Exit          // set before gone is closed

	mu     sync.Mutex
	viewer *viewer // nil while detached
	kept   tail
	since  time.Time // when the viewer left
	ended  bool
}

// viewer is one attached session.
type viewer struct {
	id   uint64 // of the request that attached it
	conn *net.UnixConn

	mu sync.Mutex // orders what is written to conn; taken after terminal.mu, never before it
}

// startTerminal begins a terminal, or continues the one whose guest was cut off.
func (s *server) startTerminal(f *Frame) error {
	if len(f.Files) != 1 {
		return fmt.Errorf("%w: terminal with %d descriptors", ErrFrame, len(f.Files))
	}
	conn, err := streamConn(f.Files[0])
	if err != nil {
		return err
	}
	v := &viewer{id: f.ID, conn: conn}
	if f.Start.Command == "" && s.reattach(v, f.Start.Size) {
		return nil
	}
	t, err := s.newTerminal(f.Start, v)
	if err != nil {
		_ = conn.Close()
		return err
	}
	s.send(&Frame{Op: OpStarted, ID: f.ID})
	go s.output(t)
	go s.input(t, v)
	return nil
}

// streamConn turns a passed socket into a connection; the file is closed in any case.
func streamConn(f *os.File) (*net.UnixConn, error) {
	defer func() { _ = f.Close() }()
	c, err := net.FileConn(f)
	if err != nil {
		return nil, fmt.Errorf("use passed socket: %w", err)
	}
	u, ok := c.(*net.UnixConn)
	if !ok {
		_ = c.Close()
		return nil, fmt.Errorf("%w: stream is no unix socket", ErrFrame)
	}
	return u, nil
}

func (s *server) newTerminal(st *Start, v *viewer) (*terminal, error) {
	p, err := openPTY()
	if err != nil {
		return nil, err
	}
	defer func() { _ = p.slave.Close() }()
	if err := errors.Join(p.setModes(st.Modes), p.resize(st.Size)); err != nil {
		_ = p.Close()
		return nil, fmt.Errorf("set up terminal: %w", err)
	}
	t := &terminal{pty: p, viewer: v, gone: make(chan struct{})}
	st.Env = append(st.Env, "SSH_TTY="+p.slave.Name())
	s.mu.Lock()
	defer s.mu.Unlock()
	pid, err := s.start(st, []*os.File{p.slave, p.slave, p.slave}, startOptions{terminal: true, done: func(e Exit) { s.terminalExited(t, e) }})
	if err != nil {
		_ = p.Close()
		return nil, err
	}
	t.child = child{pid: pid}
	s.terminals[t] = true
	s.children[v.id] = &t.child
	return t, nil
}

// output carries what the terminal prints to the viewer, and keeps the tail of it, until
// the leader has ended and the terminal is empty.
func (s *server) output(t *terminal) {
	var w StreamWriter
	read := t.pty.Read
	for {
		n, err := read(w.Room())
		if n > 0 {
			t.show(&w, n)
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			read = t.pty.drain // the leader ended: take what is there, wait for nothing
		} else if err != nil {
			break
		}
	}
	s.outputDone(t)
}

// show sends n bytes of w to the viewer. A viewer that cannot take them is gone.
func (t *terminal) show(w *StreamWriter, n int) {
	t.mu.Lock()
	t.kept.add(w.Room()[:n])
	v := t.viewer
	t.mu.Unlock()
	if v == nil {
		return
	}
	v.mu.Lock()
	w.W = v.conn
	err := w.Flush(StreamData, n)
	v.mu.Unlock()
	if err != nil {
		t.detach(v)
	}
}

// reattach gives v the terminal whose guest left last, if there is one, and shows it where
// the guest left off. The size is set twice so that a full-screen program repaints even
// when the size did not change.
func (s *server) reattach(v *viewer, size Size) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	t, kept := s.takeDetached(v)
	if t == nil {
		return false
	}
	s.send(&Frame{Op: OpStarted, ID: v.id, Attached: true})
	go s.input(t, v)
	w := StreamWriter{W: v.conn}
	if _, err := w.Write(kept); err != nil {
		return true // input sees the same end and detaches
	}
	if size.Rows > 1 {
		_ = t.pty.resize(Size{Cols: size.Cols, Rows: size.Rows - 1})
	}
	_ = t.pty.resize(size)
	return true
}

// detach forgets v, if it still is the viewer.
func (t *terminal) detach(v *viewer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.viewer == v {
		t.viewer = nil
		t.since = time.Now()
	}
	_ = v.conn.Close()
}

// input carries the viewer's keys and sizes to the terminal until the viewer is gone.
func (s *server) input(t *terminal, v *viewer) {
	r := StreamReader{R: v.conn}
	for {
		kind, body, err := r.Next()
		if err != nil {
			break
		}
		if kind == StreamResize {
			if size, err := ParseSize(body); err == nil {
				_ = t.pty.resize(size)
			}
			continue
		}
		if _, err := t.pty.Write(body); err != nil {
			break
		}
	}
	t.detach(v)
	s.forget(v.id)
	s.limitDetached()
}

// takeDetached makes v the viewer of the terminal whose guest left last and returns it with
// what it last showed; nil when none waits.
func (s *server) takeDetached(v *viewer) (*terminal, []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.detached()
	if len(all) == 0 {
		return nil, nil
	}
	t := all[len(all)-1]
	t.mu.Lock()
	defer t.mu.Unlock()
	t.viewer = v
	s.children[v.id] = &t.child
	return t, t.kept.bytes()
}

// detached lists the terminals without a viewer, the longest waiting first. The caller
// holds s.mu, without which no terminal gains a viewer.
func (s *server) detached() []*terminal {
	var all []*terminal
	for t := range s.terminals {
		t.mu.Lock()
		if t.viewer == nil && !t.ended {
			all = append(all, t)
		}
		t.mu.Unlock()
	}
	sortBySince(all)
	return all
}

func (s *server) limitDetached() {
	s.mu.Lock()
	all := s.detached()
	s.mu.Unlock()
	for len(all) > maxDetached {
		_ = s.reaper.signal(all[0].child.pid, hangUp)
		all = all[1:]
	}
}

// terminalExited notes how the leader ended and lets output finish.
func (s *server) terminalExited(t *terminal, e Exit) {
	t.mu.Lock()
	t.ended = true
	t.mu.Unlock()
	t.exit = e
	close(t.gone)
	_ = t.pty.SetReadDeadline(time.Now())
}

// outputDone ends the viewer's stream after its last byte, then reports the exit. A leader
// that let go of its terminal while it lives on is waited for.
func (s *server) outputDone(t *terminal) {
	<-t.gone
	_ = t.pty.Close()
	s.mu.Lock()
	delete(s.terminals, t)
	t.mu.Lock()
	v := t.viewer
	t.viewer = nil
	t.mu.Unlock()
	if v != nil {
		delete(s.children, v.id)
	}
	s.mu.Unlock()
	if v != nil {
		s.send(&Frame{Op: OpExited, ID: v.id, Exit: &t.exit})
		_ = v.conn.Close()
	}
}
