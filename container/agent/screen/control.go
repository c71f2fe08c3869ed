package screen

import "github.com/charmbracelet/x/ansi"

// control acts on a control character.
func (s *Screen) control(b byte) {
	c := &s.g.cur
	switch b {
	case '\b':
		c.x, c.wrap = max(0, c.x-1), false
	case '\t':
		c.x = min(s.cols-1, c.x/tabWidth*tabWidth+tabWidth)
	case '\n', '\v', '\f':
		c.wrap = false
		if s.modes.has(newLineMode) {
			c.x = 0
		}
		s.index()
	case '\r':
		c.x, c.wrap = 0, false
	case 0x0e:
		s.shift = 1
	case 0x0f:
		s.shift = 0
	}
}

const tabWidth = 8

// index moves the cursor down; at the bottom of the region the region scrolls.
func (s *Screen) index() {
	g := s.g
	switch {
	case g.cur.y == g.bot-1:
		s.scrollUp(1)
	case g.cur.y < s.rows-1:
		g.cur.y++
	}
}

func (s *Screen) reverseIndex() {
	g := s.g
	switch {
	case g.cur.y == g.top:
		g.scroll(g.top, g.bot, -1, s.cols, s.blank())
	case g.cur.y > 0:
		g.cur.y--
	}
	g.cur.wrap = false
}

// scrollUp scrolls the region. What leaves the top of the main screen becomes history.
func (s *Screen) scrollUp(n int) {
	g := s.g
	n = min(n, g.bot-g.top)
	if g == &s.main && g.top == 0 {
		for _, l := range g.lines[:n] {
			s.history.add(&s.tables, l)
		}
	}
	g.scroll(g.top, g.bot, n, s.cols, s.blank())
}

// blank is the style of erased cells: the pen's background, as xterm does.
func (s *Screen) blank() uint32 {
	if s.pen.bg == 0 {
		return 0
	}
	return s.tables.id(style{bg: s.pen.bg})
}

// esc acts on an escape sequence of two or three bytes.
func (s *Screen) esc(cmd ansi.Cmd) {
	switch cmd.Intermediate() {
	case '(', ')', '*', '+':
		if f := cmd.Final(); f == '0' || f == 'A' || f == 'B' {
			s.sets[cmd.Intermediate()-'('] = f
		}
		return
	case '#':
		if cmd.Final() == '8' {
			s.alignment()
		}
		return
	case 0:
	default:
		return
	}
	switch cmd.Final() {
	case '7':
		s.saveCursor()
	case '8':
		s.restoreCursor()
	case 'D':
		s.index()
	case 'E':
		s.g.cur.x, s.g.cur.wrap = 0, false
		s.index()
	case 'M':
		s.reverseIndex()
	case 'c':
		s.reset()
	case 'n':
		s.shift = 2
	case 'o':
		s.shift = 3
	case '=':
		s.modes.set(keypadMode, true)
	case '>':
		s.modes.set(keypadMode, false)
	}
}

// alignment is DECALN.
func (s *Screen) alignment() {
	s.g.top, s.g.bot = 0, s.rows
	s.g.cur = cursor{}
	for y := range s.rows {
		l := s.g.upTo(y, s.cols)
		for x := range l {
			l[x] = cell{r: 'E'}
		}
	}
}

func (s *Screen) saveCursor() {
	s.g.saved = saved{s.g.cur, s.pen, s.modes.has(originMode), s.sets, s.shift}
}

func (s *Screen) restoreCursor() {
	v := s.g.saved
	if v.sets[0] == 0 { // never saved: the home position and the defaults
		v.sets = plainSets
	}
	s.g.cur, s.sets, s.shift = v.cursor, v.sets, v.shift
	s.modes.set(originMode, v.origin)
	s.setPen(v.pen)
}

func (s *Screen) setPen(st style) {
	s.pen = st
	s.penID = s.tables.id(st)
	s.sweep()
}
