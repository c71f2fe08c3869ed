package agent

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/berth-gpu/berth/container/agent/screen"
)

// watch lets the host look at a terminal: its size, what it shows now, and from then on all it
// prints. What a watcher sends is not read; a slow one loses frames and is drawn again.
func (s *server) watch(f *Frame) error {
	if len(f.Files) != 1 {
		return fmt.Errorf("%w: watch with %d descriptors", ErrFrame, len(f.Files))
	}
	conn, err := streamConn(f.Files[0])
	if err != nil {
		return err
	}
	v := &viewer{id: f.ID, conn: conn, look: true}
	s.mu.Lock()
	t := s.terminal(f.Terminal)
	s.mu.Unlock()
	if t == nil {
		_ = conn.Close()
		return errNoTerminal
	}
	s.send(&Frame{Op: OpStarted, ID: f.ID, Terminal: t.number})
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		go func() {
			s.send(&Frame{Op: OpExited, ID: v.id, Exit: &Exit{}})
			_ = conn.Close()
		}()
		return nil
	}
	t.watchers = append(t.watchers, v)
	cols, rows := t.screen.Size()
	t.push(v, appendSize(nil, Size{Cols: uint16(cols), Rows: uint16(rows)}))
	t.queueFrames(v, t.screen.Redraw(screen.RedrawOptions{}))
	go s.guard("watcher", func() {
		_, _ = io.Copy(io.Discard, conn)
		t.detach(v)
	})
	return nil
}

// list describes every terminal, the oldest first.
func (s *server) list() []Terminal {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]Terminal, 0, len(s.terminals))
	for t := range s.terminals {
		all = append(all, t.describe())
	}
	slices.SortFunc(all, func(a, b Terminal) int { return cmp.Compare(a.Number, b.Number) })
	return all
}

func (t *terminal) describe() Terminal {
	t.mu.Lock()
	defer t.mu.Unlock()
	cols, rows := t.screen.Size()
	d := Terminal{
		Number: t.number, Command: t.command, Title: t.screen.Title(), Began: t.began, Alt: t.screen.Alt(),
		Size: Size{Cols: uint16(cols), Rows: uint16(rows)}, Watchers: len(t.watchers),
	}
	for _, v := range t.guests {
		d.Guests = append(d.Guests, v.id)
	}
	if len(t.guests) == 0 {
		d.Left = t.since
	}
	return d
}

// notice shows a line of ours on a terminal, or on all.
func (s *server) notice(f *Frame) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for t := range s.terminals {
		if t.number == f.Terminal || f.Terminal == 0 {
			t.notice(f.Text)
		}
	}
}

// farewell ends a guest's stream, not their terminal, with a line of ours; their own terminal is
// taken out of whatever a full-screen program had made of it.
func (s *server) farewell(f *Frame) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for t := range s.terminals {
		v := t.guest(f.ID)
		if v == nil {
			continue
		}
		t.mu.Lock()
		if v.painted {
			t.queueFrames(v, v.painter.Leave())
		} else {
			t.queueFrames(v, t.screen.Leave())
		}
		t.queueFrames(v, []byte("\r\nberth: "+f.Text+"\r\n"))
		t.mu.Unlock()
		go s.guard("farewell", func() {
			t.finish(v)
			t.detach(v)
		})
	}
}

// guest finds the viewer that a request attached.
func (t *terminal) guest(id uint64) *viewer {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, v := range t.guests {
		if v.id == id {
			return v
		}
	}
	return nil
}

// noticeTime is how long a line of ours stays over a full-screen program.
const noticeTime = 4 * time.Second

// notice prints a line as if the program had; over a full-screen program it lies on the first
// row for a while, and the screen is drawn again.
func (t *terminal) notice(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.screen.Alt() {
		line := []byte("\r\n\x1b[7mberth: " + text + "\x1b[0m\r\n")
		_, _ = t.screen.Write(line)
		for _, v := range slices.Concat(t.guests, t.watchers) {
			if v.painted {
				t.repaint(v)
			} else {
				t.push(v, frameOf(line))
			}
		}
		return
	}
	for _, v := range t.guests {
		t.push(v, frameOf([]byte("\x1b7\x1b[r\x1b[1;1H\x1b[0;7mberth: "+text+"\x1b[0m\x1b8")))
	}
	t.later(noticeTime, func() {
		for _, v := range t.guests {
			if t.redraw(v); v.painted {
				t.repaint(v)
			}
		}
	})
}
