package tui

import "strings"

// depth is how many colours a terminal has.
type depth int

// The depths that matter: what lies between is converted by the renderer.
const (
	noColour depth = iota // NO_COLOR, or a terminal that has none: bold and reverse only
	colours16
	colours
)

// style is an SGR sequence that switches it on; empty: as it is.
type style string

// styles are all there are. Few colours, each with one meaning.
type styles struct {
	title  style // a pane's name
	focus  style // the name of the pane that has the keys
	dim    style // what is there but rarely read
	rule   style // lines
	accent style // what a key acts on, and graphs
	good   style
	warn   style
	bad    style
	strong style
	mark   style // the selected row's background; empty where there is none
	track  style // the empty part of a bar
}

// reset ends every style.
const reset = "\x1b[m"

// newStyles returns the styles for a terminal. The background is asked for at start.
func newStyles(d depth, dark bool) styles {
	switch d {
	case noColour:
		return styles{title: "\x1b[1m", focus: "\x1b[1;4m", strong: "\x1b[1m", bad: "\x1b[1m", warn: "\x1b[1m"}
	case colours16:
		return styles{
			title: "\x1b[1m", focus: "\x1b[1;36m", dim: "\x1b[90m", rule: "\x1b[90m", accent: "\x1b[36m", good: "\x1b[32m",
			warn: "\x1b[33m", bad: "\x1b[31m", strong: "\x1b[1m", track: "\x1b[90m",
		}
	default:
	}
	if dark {
		return styles{
			title: "\x1b[1;38;2;208;208;208m", focus: "\x1b[1;38;2;120;180;224m", dim: "\x1b[38;2;138;138;138m",
			rule: "\x1b[38;2;72;72;72m", accent: "\x1b[38;2;120;180;224m", good: "\x1b[38;2;135;185;115m",
			warn: "\x1b[38;2;222;178;98m", bad: "\x1b[38;2;226;112;106m", strong: "\x1b[1m",
			mark: "\x1b[48;2;44;50;58m", track: "\x1b[38;2;72;72;72m",
		}
	}
	return styles{
		title: "\x1b[1;38;2;48;48;48m", focus: "\x1b[1;38;2;0;92;150m", dim: "\x1b[38;2;108;108;108m",
		rule: "\x1b[38;2;196;196;196m", accent: "\x1b[38;2;0;92;150m", good: "\x1b[38;2;58;118;32m",
		warn: "\x1b[38;2;146;96;0m", bad: "\x1b[38;2;176;36;36m", strong: "\x1b[1m",
		mark: "\x1b[48;2;222;232;242m", track: "\x1b[38;2;200;200;200m",
	}
}

// paint writes s in this style. s holds no styles of its own.
func (st style) paint(s string) string {
	if st == "" || s == "" {
		return s
	}
	return string(st) + s + reset
}

// marked lays the selection under a whole line, whose own styles stay.
func (s styles) marked(line string) string {
	if s.mark == "" {
		return line
	}
	return string(s.mark) + strings.ReplaceAll(line, reset, reset+string(s.mark)) + reset
}
