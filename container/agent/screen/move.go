package screen

// moveTo puts the cursor on a place of the screen, or on the nearest one.
func (s *Screen) moveTo(x, y int) {
	s.g.cur = cursor{x: max(0, min(x, s.cols-1)), y: max(0, min(y, s.rows-1))}
}

// position is CUP, counting from one; with origin mode it counts from the region.
func (s *Screen) position(col, row int) {
	g := s.g
	if s.modes.has(originMode) {
		s.moveTo(col-1, min(g.top+row-1, g.bot-1))
		return
	}
	s.moveTo(col-1, row-1)
}

// up moves the cursor up, not out of the region if it is inside.
func (s *Screen) up(n int) {
	g, stop := s.g, 0
	if g.cur.y >= g.top {
		stop = g.top
	}
	s.moveTo(g.cur.x, max(stop, g.cur.y-n))
}

func (s *Screen) down(n int) {
	g, stop := s.g, s.rows-1
	if g.cur.y < g.bot {
		stop = g.bot - 1
	}
	s.moveTo(g.cur.x, min(stop, g.cur.y+n))
}

// tab moves to the n-th tab stop to the right, or to the left where n is negative.
func (s *Screen) tab(n int) {
	x := s.g.cur.x
	if n > 0 {
		x = (x/tabWidth + n) * tabWidth
	} else {
		x = ((x+tabWidth-1)/tabWidth + n) * tabWidth
	}
	s.moveTo(x, s.g.cur.y)
}

// margins is DECSTBM; rows count from one, and a bottom of zero is the last row.
func (s *Screen) margins(top, bottom int) {
	if bottom == 0 || bottom > s.rows {
		bottom = s.rows
	}
	if top >= bottom {
		return
	}
	s.g.top, s.g.bot = top-1, bottom
	s.position(1, 1)
}

// insertLines opens n lines at the cursor, or takes lines away where n is negative.
func (s *Screen) insertLines(n int) {
	g := s.g
	if g.cur.y < g.top || g.cur.y >= g.bot {
		return
	}
	g.scroll(g.cur.y, g.bot, -n, s.cols, s.blank())
	g.cur.x, g.cur.wrap = 0, false
}

// eraseCells blanks columns of the cursor's line.
func (s *Screen) eraseCells(from, to int) {
	s.g.erase(s.g.cur.y, from, to, s.cols, s.blank())
	s.g.cur.wrap = false
}

func (s *Screen) eraseLine(how int) {
	switch how {
	case 0:
		s.eraseCells(s.g.cur.x, s.cols)
	case 1:
		s.eraseCells(0, s.g.cur.x+1)
	case 2:
		s.eraseCells(0, s.cols)
	}
}

func (s *Screen) eraseDisplay(how int) {
	from, to := 0, 0
	switch how {
	case 0:
		s.eraseLine(0)
		from, to = s.g.cur.y+1, s.rows
	case 1:
		s.eraseLine(1)
		to = s.g.cur.y
	case 2:
		to = s.rows
	case 3:
		s.history.buf = nil
	}
	for y := from; y < to; y++ {
		s.g.erase(y, 0, s.cols, s.cols, s.blank())
	}
}
