package screen

import "slices"

// grid is one of a terminal's two screens. A line is only as long as what was put on it: the
// rest of it is blank.
type grid struct {
	lines    []line
	cur      cursor
	saved    saved
	top, bot int   // the scrolling region, bot exclusive
	kitty    []int // flags of the kitty keyboard protocol, the last in force
}

type line []cell

// cursor is where the next character goes. wrap is set after the last column was printed: the
// next character begins a new line first.
type cursor struct {
	x, y int
	wrap bool
}

// saved is what DECSC keeps.
type saved struct {
	cursor
	pen    style
	origin bool
	sets   [4]byte
	shift  int
}

func newGrid(rows int) grid { return grid{lines: make([]line, rows), bot: rows} }

// upTo returns line y with at least n cells to write on.
func (g *grid) upTo(y, n int) line {
	l := g.lines[y]
	if len(l) < n {
		if cap(l) < n {
			l = slices.Grow(l, n-len(l))
		}
		was := len(l)
		l = l[:n]
		clear(l[was:])
		g.lines[y] = l
	}
	return l
}

// split makes sure that no wide character lies across the border before column x.
func (l line) split(x int) {
	if x > 0 && x < len(l) && l[x].r == wideTail {
		l[x-1].r, l[x].r = 0, 0
	}
}

// erase blanks the columns from x to end of line y with style st. Blanks of the default style
// at the end of a line are not kept.
func (g *grid) erase(y, x, end, cols int, st uint32) {
	l := g.lines[y]
	end = min(end, cols)
	l.split(x)
	l.split(end)
	if st != 0 {
		l = g.upTo(y, end)
	} else if end >= len(l) {
		g.lines[y] = l[:min(x, len(l))]
		return
	}
	for i := x; i < end; i++ {
		l[i] = cell{st: st}
	}
}

// scroll moves the lines from top to bot up by n, or down where n is negative, and blanks what
// comes in.
func (g *grid) scroll(top, bot, n, cols int, st uint32) {
	area := g.lines[top:bot]
	n = max(-len(area), min(n, len(area)))
	if n > 0 {
		rotate(area, n)
		for y := bot - n; y < bot; y++ {
			g.fresh(y, cols, st)
		}
		return
	}
	rotate(area, len(area)+n)
	for y := top; y < top-n; y++ {
		g.fresh(y, cols, st)
	}
}

// rotate moves the first n of l behind the others.
func rotate(l []line, n int) {
	if n == 1 { // by far the most frequent
		first := l[0]
		copy(l, l[1:])
		l[len(l)-1] = first
		return
	}
	slices.Reverse(l[:n])
	slices.Reverse(l[n:])
	slices.Reverse(l)
}

func (g *grid) fresh(y, cols int, st uint32) {
	g.lines[y] = g.lines[y][:0]
	if st != 0 {
		g.erase(y, 0, cols, cols, st)
	}
}

// insert opens n blank cells at x, pushing the rest of the line to the right.
func (g *grid) insert(y, x, n, cols int, st uint32) {
	n = min(n, cols-x)
	l := g.lines[y]
	l.split(x)
	l.split(cols - n)
	if was := len(l); x < was {
		l = g.upTo(y, min(cols, was+n))
		copy(l[x+n:], l[x:was])
	}
	g.erase(y, x, x+n, cols, st)
}

// remove takes n cells away at x, moving the rest of the line to the left.
func (g *grid) remove(y, x, n, cols int, st uint32) {
	n = min(n, cols-x)
	l := g.lines[y]
	l.split(x)
	l.split(x + n)
	if x < len(l) {
		rest := 0
		if x+n < len(l) {
			rest = copy(l[x:], l[x+n:])
		}
		g.lines[y] = l[:x+rest]
	}
	if st != 0 {
		g.erase(y, cols-n, cols, cols, st)
	}
}

// resize changes the number of lines and cuts the columns. It does not move the cursor.
func (g *grid) resize(cols, rows int) {
	if rows < len(g.lines) {
		g.lines = slices.Clone(g.lines[:rows])
	}
	for len(g.lines) < rows {
		g.lines = append(g.lines, nil)
	}
	for y, l := range g.lines {
		if len(l) > cols {
			l.split(cols)
			g.lines[y] = slices.Clone(l[:cols])
		}
	}
	g.top, g.bot = 0, rows
	g.cur.clamp(cols, rows)
	g.saved.clamp(cols, rows)
}

func (c *cursor) clamp(cols, rows int) {
	if c.x >= cols {
		c.x = cols - 1
	} else if c.x < cols-1 {
		c.wrap = false
	}
	c.y = min(c.y, rows-1)
}
