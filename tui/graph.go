package tui

import (
	"strings"
	"unicode"
)

// The characters that the screen itself is drawn with.
const (
	ruleRune = "─"
	wallRune = "│"
	teeRune  = "┬"
	cursor   = "▸" // the selected row
	onRune   = "●" // a part that works
	offRune  = "○" // a part that does not
	upRune   = "↑"
	downRune = "↓"
	dot      = " · "
)

var (
	steps = []rune(" ▁▂▃▄▅▆▇█") // empty to full, for a graph's columns
	parts = []rune(" ▏▎▍▌▋▊▉█") // empty to full, for a bar's last cell
	spins = []rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")
)

// graph draws the newest values (0 to 1) as one row of n columns, the newest at the right. A
// value that is not zero shows at least a trace.
func graph(values []float64, n int) string {
	if n <= 0 {
		return ""
	}
	values = values[max(0, len(values)-n):]
	row := make([]rune, 0, n)
	for range n - len(values) {
		row = append(row, steps[0])
	}
	for _, v := range values {
		row = append(row, steps[level(v, len(steps)-1)])
	}
	return string(row)
}

// level maps 0..1 to 0..top; only what is zero is 0.
func level(v float64, top int) int {
	if v <= 0 || v != v {
		return 0
	}
	return min(max(int(v*float64(top)+0.5), 1), top)
}

// bar draws a part (0 to 1) of n columns.
func bar(part float64, n int, on, track style) string {
	if n <= 0 {
		return ""
	}
	eighths := level(part, 8*n)
	whole, rest := eighths/8, eighths%8
	text := strings.Repeat(string(parts[8]), whole)
	if rest > 0 {
		text += string(parts[rest])
		whole++
	}
	return on.paint(text) + track.paint(strings.Repeat("░", n-whole))
}

// toASCII redraws a screen for a terminal whose locale is not UTF-8: every character becomes
// as many ASCII ones as it took columns.
func toASCII(screen string) string {
	var b strings.Builder
	for _, r := range screen {
		switch {
		case r < 0x80:
			b.WriteRune(r)
		case asciiOf[r] != 0:
			b.WriteByte(asciiOf[r])
		case unicode.IsMark(r):
		default:
			b.WriteString(strings.Repeat("?", width(string(r))))
		}
	}
	return b.String()
}

var asciiOf = map[rune]byte{
	'─': '-', '│': '|', '┬': '+', '▸': '>', '●': '+', '○': 'x', '↑': '^', '↓': 'v', '·': '-', '…': '~', '░': '.', '°': ' ',
	'▁': '.', '▂': ':', '▃': '-', '▄': '=', '▅': '+', '▆': '*', '▇': '#', '█': '#',
	'▏': '.', '▎': '.', '▍': ':', '▌': '=', '▋': '=', '▊': '#', '▉': '#', '▀': '#',
	'⠋': '|', '⠙': '/', '⠹': '-', '⠸': '\\', '⠼': '|', '⠴': '/', '⠦': '-', '⠧': '\\', '⠇': '|', '⠏': '/',
}
