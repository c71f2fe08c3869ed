package screen

import (
	"strconv"

	"github.com/charmbracelet/x/ansi"
)

// color is how a program named a colour: not at all, by number, or by red, green and blue.
type color uint32

const (
	indexed color = 1 << 24
	direct  color = 2 << 24
)

// attrs are a style's flags; the kind of underline is the number above them.
type attrs uint16

const (
	bold attrs = 1 << iota
	faint
	italic
	blink
	reverse
	conceal
	strike
	overline
	underlineUnit // times 1 to 5: single, double, curly, dotted, dashed
)

const underlineMask = 7 * underlineUnit

// style is how a cell is drawn.
type style struct {
	fg, bg, line color
	attrs        attrs
	link         string // parameters and address of OSC 8, joined by a semicolon
}

// sgrAttrs are the SGR parameters that set one flag, ECMA-48 section 8.3.117.
var sgrAttrs = map[int]attrs{1: bold, 2: faint, 3: italic, 5: blink, 6: blink, 7: reverse, 8: conceal, 9: strike, 53: overline}

// sgrClears are the parameters that clear flags.
var sgrClears = map[int]attrs{
	22: bold | faint, 23: italic, 24: underlineMask, 25: blink, 27: reverse, 28: conceal, 29: strike, 55: overline,
}

// sgr applies the parameters of an SGR sequence.
func (st *style) sgr(p ansi.Params) {
	if len(p) == 0 {
		*st = style{link: st.link}
	}
	for i := 0; i < len(p); {
		i += st.sgrOne(p[i:])
	}
}

// sgrOne applies the first of p and returns how many belong to it.
func (st *style) sgrOne(p ansi.Params) int {
	n := p[0].Param(0)
	sub := 1 // with what a colon ties to it
	for sub <= len(p) && p[sub-1].HasMore() && sub < len(p) {
		sub++
	}
	switch {
	case n == 0:
		*st = style{link: st.link}
	case n == 4 || n == 21:
		st.underline(n, p[:sub])
	case sgrAttrs[n] != 0:
		st.attrs |= sgrAttrs[n]
	case sgrClears[n] != 0:
		st.attrs &^= sgrClears[n]
	case n == 38 || n == 48 || n == 58:
		c, used := readColor(p, sub)
		st.color(n, c)
		return used
	default:
		st.basicColor(n)
	}
	return sub
}

func (st *style) underline(n int, p ansi.Params) {
	kind := 1
	if n == 21 {
		kind = 2
	} else if len(p) > 1 {
		kind = min(p[1].Param(1), 5)
	}
	st.attrs = st.attrs&^underlineMask | attrs(kind)*underlineUnit
}

func (st *style) color(n int, c color) {
	switch n {
	case 38:
		st.fg = c
	case 48:
		st.bg = c
	default:
		st.line = c
	}
}

func (st *style) basicColor(n int) {
	switch {
	case n >= 30 && n <= 37:
		st.fg = indexed | color(n-30)
	case n >= 90 && n <= 97:
		st.fg = indexed | color(n-90+8)
	case n >= 40 && n <= 47:
		st.bg = indexed | color(n-40)
	case n >= 100 && n <= 107:
		st.bg = indexed | color(n-100+8)
	case n == 39:
		st.fg = 0
	case n == 49:
		st.bg = 0
	case n == 59:
		st.line = 0
	}
}

// readColor reads 38;5;N, 38;2;R;G;B and their forms with colons, ISO 8613-6. It returns how
// many parameters it took.
func readColor(p ansi.Params, sub int) (color, int) {
	at := func(i int) color { v, _, _ := p.Param(i, 0); return color(min(v, 255)) }
	kind, _, _ := p.Param(1, 0)
	rgb := 2 // where red is
	switch {
	case sub >= 6: // 38:2:colourspace:r:g:b
		rgb = 3
	case sub > 1:
	case kind == 5:
		sub = 3
	case kind == 2:
		sub = 5
	default:
		sub = 2
	}
	switch kind {
	case 5:
		return indexed | at(2), min(sub, len(p))
	case 2:
		return direct | at(rgb)<<16 | at(rgb+1)<<8 | at(rgb+2), min(sub, len(p))
	}
	return 0, min(sub, len(p))
}

// appendTo writes the sequences that set exactly this style.
func (st *style) appendTo(b []byte, from *style) []byte {
	if from.link != st.link {
		if st.link == "" {
			b = append(b, "\x1b]8;;\x1b\\"...)
		} else {
			b = append(append(append(b, "\x1b]8;"...), st.link...), "\x1b\\"...)
		}
	}
	plain, was := *st, *from
	plain.link, was.link = "", ""
	if plain == was {
		return b
	}
	b = append(b, "\x1b[0"...)
	for _, f := range []struct {
		a attrs
		n string
	}{{bold, ";1"}, {faint, ";2"}, {italic, ";3"}, {blink, ";5"}, {reverse, ";7"}, {conceal, ";8"}, {strike, ";9"}, {overline, ";53"}} {
		if st.attrs&f.a != 0 {
			b = append(b, f.n...)
		}
	}
	switch kind := int(st.attrs&underlineMask) / int(underlineUnit); kind {
	case 0:
	case 1:
		b = append(b, ";4"...)
	default:
		b = strconv.AppendInt(append(b, ";4:"...), int64(kind), 10)
	}
	b = st.fg.appendTo(b, 30)
	b = st.bg.appendTo(b, 40)
	b = st.line.appendTo(b, 50)
	return append(b, 'm')
}

// appendTo writes the parameters for c, of which the kind is 30, 40 or 50.
func (c color) appendTo(b []byte, kind int) []byte {
	n := int(c & 0xffffff)
	num := func(v int) { b = strconv.AppendInt(append(b, ';'), int64(v), 10) }
	switch {
	case c == 0:
	case c&direct != 0:
		num(kind + 8)
		num(2)
		num(n >> 16)
		num(n >> 8 & 255)
		num(n & 255)
	case n < 8 && kind < 50:
		num(kind + n)
	case n < 16 && kind < 50:
		num(kind + 60 + n - 8)
	default:
		num(kind + 8)
		num(5)
		num(n)
	}
	return b
}
