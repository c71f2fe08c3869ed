package screen

// View is a picture of a screen. Its rows hold text and SGR sequences only, each from the
// default style back to it, without trailing blanks: they can be shown anywhere.
type View struct {
	Cols   int      `json:"cols"`
	Rows   int      `json:"rows"`
	Lines  []string `json:"lines"` // Rows of them
	X      int      `json:"x"`     // of the cursor, from 0
	Y      int      `json:"y"`
	Hidden bool     `json:"hidden,omitempty"` // the cursor is
	Alt    bool     `json:"alt,omitempty"`    // a full-screen program is on
	Title  string   `json:"title,omitempty"`
	modes  modes
	cursor int
}

// View returns a picture of what the screen shows now.
func (s *Screen) View() View {
	v := View{
		Cols: s.cols, Rows: s.rows, X: s.g.cur.x, Y: s.g.cur.y, Hidden: !s.modes.has(showCursor), Alt: s.Alt(), Title: s.Title(),
		Lines: make([]string, s.rows), modes: s.modes, cursor: s.cursor,
	}
	var b []byte
	for y, l := range s.g.lines {
		b = s.tables.row(b[:0], s.trimmed(l))
		v.Lines[y] = string(b)
	}
	return v
}

// trimmed leaves out blanks of the default style at the end of l.
func (s *Screen) trimmed(l line) line {
	for len(l) > 0 && l[len(l)-1].st == 0 && (l[len(l)-1].r == 0 || l[len(l)-1].r == ' ') {
		l = l[:len(l)-1]
	}
	return l
}
