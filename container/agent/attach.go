package agent

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/berth-gpu/berth/container/agent/screen"
)

// maxDetached is how many terminals may wait for their guest; the oldest is hung up beyond it.
const maxDetached = 32

// reattach gives v the terminal of its owner whose guest left last, if there is one. Guests of
// whom the gateway says that they are lost have left.
func (s *server) reattach(v *viewer, st *Start) bool {
	s.mu.Lock()
	for t := range s.terminals {
		for _, id := range st.Lost {
			if lost := t.guest(id); lost != nil {
				t.detach(lost)
			}
		}
	}
	all := slices.DeleteFunc(s.detached(), func(t *terminal) bool { return t.owner != st.Owner })
	if len(all) == 0 {
		s.mu.Unlock()
		return false
	}
	t := all[len(all)-1]
	s.children[v.id] = &t.child
	others := numbers(all[:len(all)-1])
	s.join(t, v, returned(t, others))
	s.mu.Unlock()
	return true
}

// returned is the line a guest finds above the screen that they left.
func returned(t *terminal, others []int) string {
	line := fmt.Sprintf("berth: terminal %d again, as you left it", t.number)
	switch len(others) {
	case 0:
		return line + "\r\n"
	case 1:
		return line + fmt.Sprintf("; %d waits too: ssh -t … berth attach %d\r\n", others[0], others[0])
	default:
		return line + fmt.Sprintf("; %v wait too: ssh -t … berth attach N\r\n", others)
	}
}

func numbers(all []*terminal) []int {
	out := make([]int, len(all))
	for i, t := range all {
		out[i] = t.number
	}
	slices.Sort(out)
	return out
}

// errNoTerminal is answered to an attach that finds nothing.
var errNoTerminal = errors.New("there is no such terminal: `berth attach` inside, or as a command without -t, lists them")

// attach has v share terminal n, or the newest one where n is 0.
func (s *server) attach(v *viewer, n int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.terminal(n)
	if t == nil {
		return errNoTerminal
	}
	s.children[v.id] = &t.child
	s.join(t, v, "")
	return nil
}

// terminal finds a terminal by its number, or the newest for 0. The caller holds s.mu.
func (s *server) terminal(n int) *terminal {
	var found *terminal
	for t := range s.terminals {
		if t.number == n {
			return t
		}
		if n == 0 && (found == nil || t.began.After(found.began)) {
			found = t
		}
	}
	return found
}

// join makes v a guest of t: it is shown what there is, after a line of ours. The caller holds
// s.mu, without which no terminal gains a guest.
func (s *server) join(t *terminal, v *viewer, line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s.send(&Frame{Op: OpStarted, ID: v.id, Attached: true, Terminal: t.number})
	first := len(t.guests) == 0
	t.guests = append(t.guests, v)
	t.leaving++
	v.painted = true // until arrange says otherwise; nothing is drawn for it before
	if line != "" {
		t.queueFrames(v, []byte(line))
	}
	if first && t.screen.Alt() && v.size.Cols == t.size.Cols && v.size.Rows == t.size.Rows && v.size.Rows > 1 {
		// A full-screen program repaints when the size changes: change it and back, for what the
		// model does not know, such as images.
		_ = t.pty.resize(Size{Cols: v.size.Cols, Rows: v.size.Rows - 1})
		_ = t.pty.resize(v.size)
	}
	t.arrange(v)
	t.drained.Broadcast()
	go s.guard("terminal input", func() { s.input(t, v) })
}

// resized notes v's new size.
func (t *terminal) resized(v *viewer, size Size) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if v.size != size {
		v.size = size
		t.arrange(nil)
	}
}

// arrange gives the terminal the size of its smallest guest, and decides who gets its bytes and
// who is painted. The caller holds t.mu. The guest who has just come is named: it has seen nothing.
func (t *terminal) arrange(fresh *viewer) {
	if len(t.guests) == 0 {
		return
	}
	if size := smallest(t.guests); size != t.size {
		t.size = size
		_ = t.pty.resize(size)
		t.screen.Resize(modelSize(size))
		frame := appendSize(nil, size)
		for _, v := range t.watchers {
			t.push(v, frame)
		}
	}
	raw := slices.IndexFunc(t.guests, func(v *viewer) bool { return v.size.Cols == t.size.Cols && v.size.Rows == t.size.Rows && t.fits() })
	for i, v := range t.guests {
		switch {
		case i == raw && v.painted:
			t.queueFrames(v, v.painter.Leave())
			v.painted, v.dirty = false, false
			t.queueFrames(v, t.screen.Redraw(screen.RedrawOptions{History: v == fresh}))
		case i != raw:
			v.painted = true
			v.painter.Input = true
			t.repaint(v)
		}
	}
}

// fits reports whether the model has the terminal's whole size.
func (t *terminal) fits() bool {
	return t.size.Cols <= screen.MaxCols && t.size.Rows <= screen.MaxRows
}

// smallest is the largest size that every guest can show. Who does not know theirs has no say.
func smallest(guests []*viewer) Size {
	size := guests[0].size
	for _, v := range guests[1:] {
		switch {
		case v.size.Cols == 0 || v.size.Rows == 0:
		case size.Cols == 0 || size.Rows == 0:
			size = v.size
		default:
			if v.size.Cols < size.Cols {
				size.Cols, size.Width = v.size.Cols, v.size.Width
			}
			if v.size.Rows < size.Rows {
				size.Rows, size.Height = v.size.Rows, v.size.Height
			}
		}
	}
	return size
}

// detach forgets v.
func (t *terminal) detach(v *viewer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	_ = v.conn.Close()
	if v.left {
		return
	}
	v.left, v.queue, v.queued = true, nil, 0
	t.guests = slices.DeleteFunc(t.guests, func(o *viewer) bool { return o == v })
	t.watchers = slices.DeleteFunc(t.watchers, func(o *viewer) bool { return o == v })
	if len(t.guests) == 0 && !v.look {
		t.since = time.Now()
		t.leaving++
	}
	t.drained.Broadcast()
	t.arrange(nil)
}

// keepFor hangs t up once its guest has been away for as long as the host keeps terminals.
func (s *server) keepFor(t *terminal) {
	t.mu.Lock()
	away, leaving := len(t.guests) == 0 && !t.ended, t.leaving
	t.mu.Unlock()
	if !away || t.keep <= 0 {
		return
	}
	time.AfterFunc(t.keep, func() {
		t.mu.Lock()
		same := t.leaving == leaving && !t.ended
		t.mu.Unlock()
		if same {
			_ = s.reaper.signal(t.child.pid, hangUp)
		}
	})
}

// detached lists the terminals without a guest, the longest waiting first. The caller holds
// s.mu, without which no terminal gains a guest.
func (s *server) detached() []*terminal {
	var all []*terminal
	for t := range s.terminals {
		t.mu.Lock()
		if len(t.guests) == 0 && !t.ended {
			all = append(all, t)
		}
		t.mu.Unlock()
	}
	slices.SortFunc(all, func(a, b *terminal) int { return a.since.Compare(b.since) })
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
