package screen

import (
	"unicode/utf8"

	"github.com/clipperhouse/displaywidth"
)

// ascii prints a run of characters from space to tilde.
func (s *Screen) ascii(p []byte) {
	if s.sets[s.shift] != 'B' || s.modes.has(insertMode) {
		for _, c := range p {
			s.print(rune(c))
		}
		return
	}
	s.lastRune = rune(p[len(p)-1])
	for len(p) > 0 {
		s.beginCell(1)
		g := s.g
		n := min(len(p), s.cols-g.cur.x)
		l := g.upTo(g.cur.y, g.cur.x+n)
		l.split(g.cur.x)
		l.split(g.cur.x + n)
		at := l[g.cur.x : g.cur.x+n]
		for i := range at {
			at[i] = cell{rune(p[i]), s.penID}
		}
		s.advance(n)
		p = p[n:]
	}
}

// print prints one rune at the cursor.
func (s *Screen) print(r rune) {
	if r < 0x80 {
		r = mapped(s.sets[s.shift], r)
	}
	w := 1
	if r >= 0x80 && r < 0xa0 { // C1 controls, which no program that writes UTF-8 means
		return
	}
	if r >= 0x300 {
		w = displaywidth.Rune(r)
	}
	if r == utf8.RuneError {
		w = 1
	}
	if w == 0 {
		s.combine(r)
		return
	}
	w = min(w, s.cols)
	s.lastRune = r
	s.beginCell(w)
	g := s.g
	if s.modes.has(insertMode) {
		g.insert(g.cur.y, g.cur.x, w, s.cols, 0)
	}
	l := g.upTo(g.cur.y, g.cur.x+w)
	l.split(g.cur.x)
	l.split(g.cur.x + w)
	l[g.cur.x] = cell{r, s.penID}
	if w == 2 {
		l[g.cur.x+1] = cell{wideTail, s.penID}
	}
	s.advance(w)
}

// beginCell makes room for w columns at the cursor: on a new line where there is none on this.
func (s *Screen) beginCell(w int) {
	g := s.g
	auto := s.modes.has(autoWrap)
	if auto && (g.cur.wrap || g.cur.x+w > s.cols) {
		g.cur.x, g.cur.wrap = 0, false
		s.index()
	}
	g.cur.wrap = false
	g.cur.x = min(g.cur.x, s.cols-w)
}

func (s *Screen) advance(n int) {
	c := &s.g.cur
	c.x += n
	if c.x >= s.cols {
		c.x, c.wrap = s.cols-1, s.modes.has(autoWrap)
	}
}

// combine puts a rune without a width on the character before the cursor.
func (s *Screen) combine(mark rune) {
	x, l := s.g.cur.x-1, s.g.lines[s.g.cur.y]
	if s.g.cur.wrap {
		x++
	}
	if x > 0 && x < len(l) && l[x].r == wideTail {
		x--
	}
	if x < 0 || x >= len(l) {
		return
	}
	l[x].r = s.tables.combine(l[x].r, mark)
	s.sweep()
}

// sweep keeps the tables small.
func (s *Screen) sweep() {
	if s.tables.full() {
		s.tables.sweep(&s.main, &s.alt)
		s.penID = s.tables.id(s.pen)
	}
}

// mapped translates a character by a designated set: DEC's line drawing or the British one.
func mapped(set byte, r rune) rune {
	switch {
	case set == '0' && r >= '_' && r <= '~':
		return lineDrawing[r-'_']
	case set == 'A' && r == '#':
		return '£'
	}
	return r
}

// lineDrawing is the DEC Special Graphics set, from the underscore on.
var lineDrawing = []rune(" ◆▒␉␌␍␊°±␤␋┘┐┌└┼⎺⎻─⎼⎽├┤┴┬│≤≥π≠£·")
