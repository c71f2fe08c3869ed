package screen

import (
	"maps"
	"slices"
	"strconv"
)

// RedrawOptions says what a Redraw may rely on.
type RedrawOptions struct {
	// History has what scrolled off shown first, and moves what is on the other terminal up and
	// out of the way, not away: for a terminal that shows something else. Otherwise it is one that
	// showed this screen already, and is only corrected.
	History bool
}

// Redraw returns the bytes that bring a terminal of the same size, in whatever state, to where a
// terminal is that read everything written to s.
func (s *Screen) Redraw(o RedrawOptions) []byte {
	b := []byte("\x1b[?1049l\x1b[?2026l\x1b[!p\x1b[?6l\x1b[?7h\x1b[4l\x1b[20l\x1b[r\x1b[0m\x1b]8;;\x1b\\\x1b(B\x1b)B\x1b*B\x1b+B\x0f\x1b[?25l")
	b = s.drawMain(b, o.History)
	b = s.drawState(b, &s.main)
	if s.Alt() {
		v := s.main.saved // 1049 saves these, and leaving brings them back
		if v.sets[0] != 0 {
			b = drawSets(b, v.sets, v.shift)
		}
		b = append(v.pen.appendTo(b, &style{}), "\x1b[?1049h\x1b(B\x1b)B\x1b*B\x1b+B\x0f"...)
		b = append((&style{}).appendTo(b, &v.pen), "\x1b[r\x1b[H\x1b[2J"...)
		b = s.drawRows(b, &s.alt)
		b = s.drawState(b, &s.alt)
	}
	b = s.drawStrings(b)
	return s.drawModes(b)
}

// drawMain draws the main screen, after the history where that is wanted: as lines that follow
// each other, so that the terminal keeps what it scrolls off.
func (s *Screen) drawMain(b []byte, history bool) []byte {
	if !history {
		return s.drawRows(append(b, "\x1b[H\x1b[2J"...), &s.main)
	}
	b = moveCursor(b, 0, s.rows-1)
	for range s.rows {
		b = append(b, '\n')
	}
	b = append(b, "\x1b[H"...)
	for _, c := range s.history.lines() {
		if c == '\n' {
			b = append(b, '\r')
		}
		b = append(b, c)
	}
	for y := range s.rows {
		if y > 0 {
			b = append(b, "\r\n"...)
		}
		b = s.tables.row(b, s.main.lines[y])
	}
	return b
}

// drawRows draws each line at its place, on an empty screen.
func (s *Screen) drawRows(b []byte, g *grid) []byte {
	for y, l := range g.lines {
		if len(l) > 0 {
			b = s.tables.row(moveCursor(b, 0, y), l)
		}
	}
	return b
}

// drawState sets what a grid keeps beside its cells: the saved cursor, the region, the cursor.
func (s *Screen) drawState(b []byte, g *grid) []byte {
	if v := g.saved; v.sets[0] != 0 {
		b = drawSets(b, v.sets, v.shift)
		if v.origin {
			b = append(b, "\x1b[?6h"...)
		}
		b = v.pen.appendTo(moveCursor(b, v.x, v.y), &style{})
		b = append(b, "\x1b7\x1b[?6l"...)
		b = (&style{}).appendTo(b, &v.pen)
		b = drawSets(b, plainSets, 0)
	}
	if g.top != 0 || g.bot != s.rows {
		b = append(b, "\x1b["...)
		b = strconv.AppendInt(b, int64(g.top+1), 10)
		b = strconv.AppendInt(append(b, ';'), int64(g.bot), 10)
		b = append(b, 'r')
	}
	if len(g.kitty) > 0 {
		b = append(b, "\x1b[<8u"...)
	}
	for _, flags := range g.kitty {
		b = append(strconv.AppendInt(append(b, "\x1b[>"...), int64(flags), 10), 'u')
	}
	b = moveCursor(b, g.cur.x, g.cur.y)
	if g.cur.wrap { // the last column has to be printed again to get there
		b = s.drawLast(b, g)
	}
	return b
}

// drawLast prints the last character of the cursor's line again, which leaves a terminal about
// to wrap.
func (s *Screen) drawLast(b []byte, g *grid) []byte {
	x, l := s.cols-1, g.lines[g.cur.y]
	if x >= len(l) {
		return b
	}
	if l[x].r == wideTail {
		x--
		b = moveCursor(b, x, g.cur.y)
	}
	return s.tables.row(b, l[x:])
}

func drawSets(b []byte, sets [4]byte, shift int) []byte {
	for i, set := range sets {
		b = append(b, 0x1b, '('+byte(i), set)
	}
	return append(b, []string{"\x0f", "\x0e", "\x1bn", "\x1bo"}[shift]...)
}

// drawStrings sets titles and colours.
func (s *Screen) drawStrings(b []byte) []byte {
	osc := func(cmd, text string) { b = append(b, "\x1b]"+cmd+";"+text+"\x1b\\"...) }
	for _, cmd := range slices.Sorted(maps.Keys(s.strings)) {
		osc(strconv.Itoa(cmd), s.strings[cmd])
	}
	for _, n := range slices.Sorted(maps.Keys(s.palette)) {
		osc("4;"+strconv.Itoa(n), s.palette[n])
	}
	return b
}

// drawModes sets every mode, on or off, and the pen, with which the next character is printed.
func (s *Screen) drawModes(b []byte) []byte {
	b = s.inputModes(b, 0, true)
	if s.modes.has(insertMode) {
		b = append(b, "\x1b[4h"...)
	}
	if s.modes.has(newLineMode) {
		b = append(b, "\x1b[20h"...)
	}
	b = append(strconv.AppendInt(append(b, "\x1b["...), int64(s.cursor), 10), " q"...)
	b = drawSets(b, s.sets, s.shift)
	b = s.pen.appendTo(b, &style{})
	if s.modes.has(originMode) { // moves the cursor: put it back
		b = append(b, "\x1b[?6h"...)
		b = moveCursor(b, s.g.cur.x, s.g.cur.y-s.g.top)
	}
	if !s.modes.has(autoWrap) {
		b = append(b, "\x1b[?7l"...)
	}
	if s.modes.has(showCursor) {
		b = append(b, "\x1b[?25h"...)
	}
	return b
}

// inputModes sets the modes that decide what a terminal sends, from those in was; all of them
// where every is set.
func (s *Screen) inputModes(b []byte, was modes, every bool) []byte {
	for i, n := range plainModes {
		m := firstPlain + mode(i)
		if on := s.modes.has(m); every || on != was.has(m) {
			b = strconv.AppendInt(append(b, "\x1b[?"...), int64(n), 10)
			b = append(b, map[bool]byte{true: 'h', false: 'l'}[on])
		}
	}
	if on := s.modes.has(keypadMode); every || on != was.has(keypadMode) {
		b = append(b, 0x1b, map[bool]byte{true: '=', false: '>'}[on])
	}
	if s.keys != 0 || every {
		b = append(strconv.AppendInt(append(b, "\x1b[>4;"...), int64(s.keys), 10), 'm')
	}
	return b
}

// Leave returns the bytes that take a terminal, in the state of s, back to where a shell of its
// own can go on: what is on the screen stays, a full-screen program's screen goes.
func (s *Screen) Leave() []byte {
	b := []byte("\x1b[?6l")
	if s.Alt() {
		b = append(b, "\x1b[?1049l"...)
	}
	b = moveCursor(append(b, "\x1b[r"...), s.main.cur.x, s.main.cur.y)
	plain := Screen{}
	b = plain.inputModes(b, s.modes, false)
	if s.keys != 0 {
		b = append(b, "\x1b[>4;0m"...)
	}
	if len(s.main.kitty)+len(s.alt.kitty) > 0 {
		b = append(b, "\x1b[<8u"...)
	}
	if s.cursor != 0 {
		b = append(b, "\x1b[0 q"...)
	}
	if s.palette != nil {
		b = append(b, "\x1b]104\x1b\\"...)
	}
	for cmd := range s.strings {
		if cmd >= oscForeground {
			b = append(strconv.AppendInt(append(b, "\x1b]"...), int64(cmd+oscReset), 10), "\x1b\\"...)
		}
	}
	return append(b, "\x1b[4l\x1b[20l\x1b[0m\x1b]8;;\x1b\\\x1b(B\x0f\x1b[?7h\x1b[?25h"...)
}

func moveCursor(b []byte, x, y int) []byte {
	b = strconv.AppendInt(append(b, "\x1b["...), int64(y+1), 10)
	b = strconv.AppendInt(append(b, ';'), int64(x+1), 10)
	return append(b, 'H')
}
