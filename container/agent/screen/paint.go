package screen

import (
	"strconv"

	"github.com/charmbracelet/x/ansi"
)

// Painter keeps a terminal of any size showing a screen: it draws only what changed. Where the
// terminal is smaller it shows the part around the cursor.
type Painter struct {
	Cols, Rows int  // of the terminal; may be changed between calls
	Input      bool // have the terminal report keys, mouse and pastes as the program asked

	on    bool
	lines []string // what is drawn, by the terminal's rows
	cols  int      // for which lines was drawn
	last  View
}

// Paint returns the bytes after which the terminal shows v.
func (p *Painter) Paint(v View) []byte {
	b := []byte("\x1b[?2026h\x1b[?25l")
	if !p.on {
		b = append(b, "\x1b[22;2t\x1b[?1049h\x1b[?6l\x1b[?7h\x1b[4l\x1b[r\x1b(B\x0f\x1b[0m"...)
	}
	if !p.on || p.cols != p.Cols || len(p.lines) != p.Rows {
		b = append(b, "\x1b[H\x1b[2J"...)
		p.lines, p.cols = make([]string, p.Rows), p.Cols
	}
	left, top := max(0, v.X-p.Cols+1), max(0, v.Y-p.Rows+1)
	for y := range p.Rows {
		text := ""
		if top+y < len(v.Lines) {
			text = v.Lines[top+y]
		}
		if left > 0 || v.Cols > p.Cols {
			text = ansi.Cut(text, left, left+p.Cols)
		}
		if text != p.lines[y] {
			b = append(append(append(moveCursor(b, 0, y), "\x1b[0m\x1b[K"...), text...), "\x1b[0m"...)
			p.lines[y] = text
		}
	}
	b = p.state(b, v)
	b = moveCursor(b, v.X-left, v.Y-top)
	if !v.Hidden {
		b = append(b, "\x1b[?25h"...)
	}
	p.on, p.last = true, v
	return append(b, "\x1b[?2026l"...)
}

// state sets what is not a cell: the title, the cursor's shape, and how keys are reported.
func (p *Painter) state(b []byte, v View) []byte {
	if v.Title != p.last.Title {
		b = append(append(append(b, "\x1b]2;"...), v.Title...), "\x1b\\"...)
	}
	if v.cursor != p.last.cursor {
		b = append(strconv.AppendInt(append(b, "\x1b["...), int64(v.cursor), 10), " q"...)
	}
	if p.Input {
		s := Screen{modes: v.modes}
		b = s.inputModes(b, p.last.modes, !p.on)
	}
	return b
}

// Stale makes the next Paint draw everything: something else wrote on the terminal.
func (p *Painter) Stale() { p.lines = nil }

// Leave returns the bytes that give the terminal back as it was.
func (p *Painter) Leave() []byte {
	if !p.on {
		return nil
	}
	var b []byte
	if p.Input {
		s := Screen{}
		b = s.inputModes(b, p.last.modes, false)
	}
	p.on, p.last = false, View{}
	return append(b, "\x1b[0m\x1b[0 q\x1b[?25h\x1b[?1049l\x1b[23;2t"...)
}
