package screen

import "github.com/charmbracelet/x/ansi"

// mode is one of the switches that outlast what is on the screen.
type mode uint8

// The modes that are followed. Those from firstPlain on are DEC's and xterm's, and are kept for
// nothing but to be set again.
const (
	autoWrap mode = iota
	showCursor
	originMode
	insertMode
	newLineMode
	keypadMode
	firstPlain
)

// plainModes are DEC private modes that only say how the terminal behaves: cursor keys, reverse
// video, mouse reports and their forms, focus reports, alternate scrolling, bracketed paste,
// reports of the colour scheme and of the size.
var plainModes = [...]int{1, 5, 9, 12, 45, 1000, 1001, 1002, 1003, 1004, 1005, 1006, 1007, 1015, 1016, 1034, 1035, 1036, 1039, 1042, 2004, 2027, 2031, 2048}

const cursorKeys = firstPlain // ?1, the first of plainModes

// modes is the set of those that are on.
type modes uint64

func newModes() modes { return 1<<autoWrap | 1<<showCursor }

func (m *modes) has(one mode) bool { return *m&(1<<one) != 0 }

func (m *modes) set(one mode, on bool) {
	*m &^= 1 << one
	if on {
		*m |= 1 << one
	}
}

// decMode is DECSET and DECRST.
func (s *Screen) decMode(n int, on bool) {
	switch n {
	case 6:
		s.modes.set(originMode, on)
		s.position(1, 1)
	case 7:
		s.modes.set(autoWrap, on)
		s.g.cur.wrap = s.g.cur.wrap && on
	case 25:
		s.modes.set(showCursor, on)
	case 66:
		s.modes.set(keypadMode, on)
	case 47, 1047, 1049:
		s.alternate(n, on)
	case 1048:
		if on {
			s.saveCursor()
		} else {
			s.restoreCursor()
		}
	default:
		for i, known := range plainModes {
			if n == known {
				s.modes.set(firstPlain+mode(i), on)
			}
		}
	}
}

// alternate switches between the screens, as xterm does: 1049 keeps the cursor and shows an
// empty screen, 1047 empties it when it is left, 47 does neither.
func (s *Screen) alternate(n int, on bool) {
	if on == s.Alt() {
		return
	}
	cur := s.g.cur
	if on {
		if n == 1049 {
			s.saveCursor()
		}
		if s.alt.lines == nil || n == 1049 {
			s.alt = newGrid(s.rows)
		}
		s.g = &s.alt
		s.g.cur = cur
		return
	}
	if n != 47 {
		s.alt = grid{}
	}
	s.g = &s.main
	s.g.cur = cur
	if n == 1049 {
		s.restoreCursor()
	}
}

func (s *Screen) ansiModes(p ansi.Params, on bool) {
	for _, one := range p {
		switch one.Param(0) {
		case 4:
			s.modes.set(insertMode, on)
		case 20:
			s.modes.set(newLineMode, on)
		}
	}
}
