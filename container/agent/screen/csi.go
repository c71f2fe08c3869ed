package screen

import (
	"fmt"

	"github.com/charmbracelet/x/ansi"
)

// csi acts on a control sequence. What is not known is skipped, as terminals do.
func (s *Screen) csi(cmd ansi.Cmd, p ansi.Params) {
	switch prefix, inter := cmd.Prefix(), cmd.Intermediate(); {
	case prefix == 0 && inter == 0:
		if do := plain[cmd.Final()]; do != nil {
			do(s, p)
		}
	case prefix == '?' && inter == 0:
		s.private(cmd.Final(), p)
	case prefix != 0 && inter == 0 && cmd.Final() == 'u':
		s.kitty(prefix, p)
	case prefix == '>' && inter == 0 && cmd.Final() == 'm':
		if number(p, 0, 0) == 4 {
			s.keys = number(p, 1, 0)
		}
	case prefix == '>' && inter == 0 && cmd.Final() == 'c' && number(p, 0, 0) == 0:
		s.answer("\x1b[>1;10;0c")
	case prefix == 0 && inter == ' ' && cmd.Final() == 'q':
		s.cursor = min(number(p, 0, 0), 6)
	case prefix == 0 && inter == '!' && cmd.Final() == 'p':
		s.softReset()
	}
}

func (s *Screen) private(final byte, p ansi.Params) {
	switch final {
	case 'h', 'l':
		for _, one := range p {
			s.decMode(one.Param(0), final == 'h')
		}
	case 'J', 'K': // selective erase, without protected cells
		plain[final](s, p)
	}
}

// number returns parameter i, or def where it is missing; the parser's is never negative.
func number(p ansi.Params, i, def int) int {
	n, _, _ := p.Param(i, def)
	return max(0, min(n, 1<<16))
}

// count is a parameter that says how often: at least once.
func count(p ansi.Params) int { return max(1, number(p, 0, 1)) }

// plain are the control sequences without a prefix, by their last byte: ECMA-48 and xterm's.
var plain = map[byte]func(*Screen, ansi.Params){
	'@': func(s *Screen, p ansi.Params) {
		s.g.insert(s.g.cur.y, s.g.cur.x, count(p), s.cols, s.blank())
		s.g.cur.wrap = false
	},
	'P': func(s *Screen, p ansi.Params) {
		s.g.remove(s.g.cur.y, s.g.cur.x, count(p), s.cols, s.blank())
		s.g.cur.wrap = false
	},
	'X': func(s *Screen, p ansi.Params) { s.eraseCells(s.g.cur.x, s.g.cur.x+count(p)) },
	'A': func(s *Screen, p ansi.Params) { s.up(count(p)) },
	'B': func(s *Screen, p ansi.Params) { s.down(count(p)) },
	'e': func(s *Screen, p ansi.Params) { s.down(count(p)) },
	'C': func(s *Screen, p ansi.Params) { s.moveTo(s.g.cur.x+count(p), s.g.cur.y) },
	'a': func(s *Screen, p ansi.Params) { s.moveTo(s.g.cur.x+count(p), s.g.cur.y) },
	'D': func(s *Screen, p ansi.Params) { s.moveTo(s.g.cur.x-count(p), s.g.cur.y) },
	'E': func(s *Screen, p ansi.Params) { s.down(count(p)); s.g.cur.x = 0 },
	'F': func(s *Screen, p ansi.Params) { s.up(count(p)); s.g.cur.x = 0 },
	'G': func(s *Screen, p ansi.Params) { s.moveTo(count(p)-1, s.g.cur.y) },
	'`': func(s *Screen, p ansi.Params) { s.moveTo(count(p)-1, s.g.cur.y) },
	'H': func(s *Screen, p ansi.Params) { s.position(max(1, number(p, 1, 1)), count(p)) },
	'f': func(s *Screen, p ansi.Params) { s.position(max(1, number(p, 1, 1)), count(p)) },
	'd': func(s *Screen, p ansi.Params) { s.position(s.g.cur.x+1, count(p)) },
	'I': func(s *Screen, p ansi.Params) { s.tab(count(p)) },
	'Z': func(s *Screen, p ansi.Params) { s.tab(-count(p)) },
	'J': func(s *Screen, p ansi.Params) { s.eraseDisplay(number(p, 0, 0)) },
	'K': func(s *Screen, p ansi.Params) { s.eraseLine(number(p, 0, 0)) },
	'L': func(s *Screen, p ansi.Params) { s.insertLines(count(p)) },
	'M': func(s *Screen, p ansi.Params) { s.insertLines(-count(p)) },
	'S': func(s *Screen, p ansi.Params) { s.scrollUp(count(p)) },
	'T': func(s *Screen, p ansi.Params) { s.g.scroll(s.g.top, s.g.bot, -count(p), s.cols, s.blank()) },
	'b': func(s *Screen, p ansi.Params) { s.repeat(count(p)) },
	'h': func(s *Screen, p ansi.Params) { s.ansiModes(p, true) },
	'l': func(s *Screen, p ansi.Params) { s.ansiModes(p, false) },
	'm': func(s *Screen, p ansi.Params) { s.setPen(s.pen.with(p)) },
	'n': func(s *Screen, p ansi.Params) { s.report(number(p, 0, 0)) },
	'c': func(s *Screen, p ansi.Params) {
		if number(p, 0, 0) == 0 {
			s.answer("\x1b[?62;22c")
		}
	},
	'r': func(s *Screen, p ansi.Params) { s.margins(max(1, number(p, 0, 1)), number(p, 1, 0)) },
	's': func(s *Screen, _ ansi.Params) { s.saveCursor() },
	'u': func(s *Screen, _ ansi.Params) { s.restoreCursor() },
}

// with returns st changed by an SGR sequence.
func (st style) with(p ansi.Params) style {
	st.sgr(p)
	return st
}

// maxReply bounds the answers that wait to be taken.
const maxReply = 256

func (s *Screen) answer(text string) {
	if len(s.reply)+len(text) <= maxReply {
		s.reply = append(s.reply, text...)
	}
}

// report is DSR.
func (s *Screen) report(n int) {
	switch n {
	case 5:
		s.answer("\x1b[0n")
	case 6:
		s.answer(fmt.Sprintf("\x1b[%d;%dR", s.g.cur.y+1, s.g.cur.x+1))
	}
}

// repeat is REP.
func (s *Screen) repeat(n int) {
	if s.lastRune == 0 {
		return
	}
	for range min(n, s.cols) {
		s.print(s.lastRune)
	}
}

// kitty follows the flags of the kitty keyboard protocol: pushed, popped or set.
func (s *Screen) kitty(prefix byte, p ansi.Params) {
	const deep = 8 // of the stack, as in kitty
	k := &s.g.kitty
	switch prefix {
	case '>':
		*k = append(*k, number(p, 0, 0)&31)
		*k = (*k)[max(0, len(*k)-deep):]
	case '<':
		*k = (*k)[:max(0, len(*k)-count(p))]
	case '=':
		if len(*k) == 0 {
			*k = append(*k, 0)
		}
		top := &(*k)[len(*k)-1]
		switch flags := number(p, 0, 0) & 31; number(p, 1, 1) {
		case 1:
			*top = flags
		case 2:
			*top |= flags
		case 3:
			*top &^= flags
		}
	}
}

func (s *Screen) softReset() {
	s.g.top, s.g.bot = 0, s.rows
	s.sets, s.shift = plainSets, 0
	s.g.saved = saved{}
	for _, m := range []mode{originMode, insertMode, keypadMode, cursorKeys} {
		s.modes.set(m, false)
	}
	s.modes.set(autoWrap, true)
	s.modes.set(showCursor, true)
	s.setPen(style{})
}
