package agent

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/berth-gpu/berth/container/agent/screen"
)

// hangUp is what a terminal's programs get when nobody will come back to them.
const hangUp = syscall.SIGHUP

// terminal is a pty, its leader, the model of its screen, and everyone who looks at it. It
// outlives its guest's connection, so that a cut network loses nothing.
type terminal struct {
	server  *server
	pty     *pty
	child   child
	number  int    // from 1, as the guest and the host call it
	owner   string // whose it is: the next plain login of theirs returns to it
	command string // empty for a login shell
	began   time.Time
	keep    time.Duration // how long it waits for its guest; 0: as long as the box lives

	gone chan struct{} // closed when the leader has ended
	exit Exit          // set before gone is closed

	mu       sync.Mutex
	screen   *screen.Screen
	size     Size      // of the pty
	guests   []*viewer // in the order of their arrival
	watchers []*viewer // the host's, who only look
	since    time.Time // when the last guest left
	leaving  int       // counts departures: a timer of an earlier one does nothing
	ended    bool
	drained  sync.Cond // with mu: a queue got shorter, or a viewer left
}

// startTerminal begins a terminal, or continues one: the one that was asked for, or the one
// whose guest was cut off.
func (s *server) startTerminal(f *Frame) error {
	if len(f.Files) != 1 {
		return fmt.Errorf("%w: terminal with %d descriptors", ErrFrame, len(f.Files))
	}
	conn, err := streamConn(f.Files[0])
	if err != nil {
		return err
	}
	v := &viewer{id: f.ID, conn: conn, size: f.Start.Size}
	if err := s.showTerminal(f.Start, v); err != nil {
		_ = conn.Close()
		return err
	}
	return nil
}

func (s *server) showTerminal(st *Start, v *viewer) error {
	if n, ok := attachCommand(st.Command); ok {
		return s.attach(v, n)
	}
	if st.Command == "" && s.reattach(v, st) {
		return nil
	}
	t, err := s.newTerminal(st, v)
	if err != nil {
		return err
	}
	s.send(&Frame{Op: OpStarted, ID: v.id, Terminal: t.number})
	go s.guard("terminal output", func() { s.output(t) })
	go s.guard("terminal input", func() { s.input(t, v) })
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
	t := &terminal{
		server: s, pty: p, guests: []*viewer{v}, gone: make(chan struct{}), size: st.Size, owner: st.Owner, command: st.Command,
		began: time.Now(), keep: time.Duration(st.Keep) * time.Second, screen: screen.New(modelSize(st.Size)),
	}
	t.drained.L = &t.mu
	st.Env = append(st.Env, "SSH_TTY="+p.slave.Name())
	s.mu.Lock()
	defer s.mu.Unlock()
	pid, err := s.start(st, []*os.File{p.slave, p.slave, p.slave}, startOptions{terminal: true, done: func(e Exit) { s.terminalExited(t, e) }})
	if err != nil {
		_ = p.Close()
		return nil, err
	}
	t.child = child{pid: pid}
	t.number = s.freeNumber()
	s.terminals[t] = true
	s.children[v.id] = &t.child
	return t, nil
}

// modelSize is the size of the model for a pty of size s. A client that does not know its size
// says 0.
func modelSize(s Size) (cols, rows int) {
	if s.Cols == 0 || s.Rows == 0 {
		return 80, 24
	}
	return int(s.Cols), int(s.Rows)
}

// freeNumber is the lowest number that no terminal has. The caller holds s.mu.
func (s *server) freeNumber() int {
	used := make(map[int]bool)
	for t := range s.terminals {
		used[t.number] = true
	}
	n := 1
	for used[n] {
		n++
	}
	return n
}

// output carries what the terminal prints to everyone who looks, and to the model, until the
// leader has ended and the terminal is empty.
func (s *server) output(t *terminal) {
	defer s.outputDone(t)
	var w StreamWriter
	read, rest := t.pty.Read, maxRest
	for rest > 0 {
		n, err := read(w.Room())
		if n > 0 {
			t.show(w.Frame(StreamData, n), w.Room()[:n])
		}
		select {
		case <-t.gone: // the leader ended: take what is there, wait for nothing
			read, rest = t.pty.drain, rest-n
		default:
		}
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			return
		}
	}
}

// maxRest bounds what is read from a terminal after its leader ended: a job in the background
// may go on printing for ever, and the kernel keeps less than this.
const maxRest = 1 << 20

// show sends a frame to those who see the terminal's own bytes, then has the model read them,
// from which the others are drawn.
func (t *terminal) show(frame, data []byte) {
	t.mu.Lock()
	for _, v := range slices.Concat(t.guests, t.watchers) {
		if !v.painted {
			t.push(v, frame)
		}
	}
	_, _ = t.screen.Write(data)
	reply := t.screen.TakeReply()
	raw := false
	for _, v := range t.guests {
		raw = raw || !v.painted
		if v.painted {
			t.repaint(v)
		}
	}
	t.waitForRoom()
	t.mu.Unlock()
	if !raw && len(reply) > 0 {
		t.pty.tryWrite(reply) // nobody's terminal has seen the question
	}
}

// input carries the viewer's keys and sizes to the terminal until the viewer is gone.
func (s *server) input(t *terminal, v *viewer) {
	defer func() {
		t.detach(v)
		s.forget(v.id)
		s.limitDetached()
		s.keepFor(t)
	}()
	r := StreamReader{R: v.conn}
	for {
		kind, body, err := r.Next()
		if err != nil {
			return
		}
		if kind == StreamResize {
			if size, err := ParseSize(body); err == nil {
				t.resized(v, size)
			}
			continue
		}
		_, _ = t.pty.Write(body) // a terminal that has ended takes no keys, but its last words are on their way
	}
}

// terminalExited notes how the leader ended and lets output finish.
func (s *server) terminalExited(t *terminal, e Exit) {
	t.mu.Lock()
	t.ended = true
	t.drained.Broadcast()
	t.mu.Unlock()
	t.exit = e
	close(t.gone)
	_ = t.pty.SetReadDeadline(time.Now())
}

// outputDone ends every viewer's stream after its last byte, then reports the exit. A leader
// that let go of its terminal while it lives on is waited for.
func (s *server) outputDone(t *terminal) {
	<-t.gone
	_ = t.pty.Close()
	s.mu.Lock()
	delete(s.terminals, t)
	t.mu.Lock()
	all := slices.Concat(t.guests, t.watchers)
	for _, v := range t.guests {
		delete(s.children, v.id)
		if v.painted {
			t.push(v, frameOf(v.painter.Leave()))
		}
	}
	t.mu.Unlock()
	s.mu.Unlock()
	for _, v := range all {
		go s.guard("end of terminal", func() {
			t.finish(v)
			s.send(&Frame{Op: OpExited, ID: v.id, Exit: &t.exit})
			_ = v.conn.Close()
		})
	}
}

// attachCommand reports whether command is `berth attach`, perhaps with a terminal's number: it
// is ours to serve, because a program inside could not hand its terminal over.
func attachCommand(command string) (int, bool) {
	words := strings.Fields(command)
	if len(words) < 2 || len(words) > 3 || words[0] != "berth" || words[1] != "attach" {
		return 0, false
	}
	if len(words) == 2 {
		return 0, true
	}
	n := 0
	if _, err := fmt.Sscanf(words[2], "%d", &n); err != nil || n < 1 {
		return 0, false // the program of that name lists what there is
	}
	return n, true
}
