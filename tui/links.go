package tui

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/berth-gpu/berth/gateway"
	"github.com/berth-gpu/berth/gateway/link"
)

var linkColumns = []column{
	{name: "name", min: 10, max: 28, rank: 0},
	{name: "state", min: 8, max: 9, rank: 0},
	{name: "gpu", min: 5, max: 14, rank: 4},
	{name: "guest", min: 9, max: 20, rank: 5},
	{name: "left", min: 6, max: 6, right: true, rank: 1},
	{name: "", min: 6, max: 14, rank: 3},
	{name: "door", min: 6, max: 12, rank: 4},
	{name: "from", min: 9, max: 24, rank: 6},
	{name: "in", min: 7, max: 7, right: true, rank: 2},
	{name: "out", min: 7, max: 7, right: true, rank: 2},
}

// linksPane shows the links.
func (m *Model) linksPane(r rect) []string {
	list := m.visible()
	rows := max(r.h-1, 0)
	top := m.linksTop(rows, list)
	var lines []string
	widths := fitColumns(linkColumns, r.w-2)
	for _, l := range list[top:min(top+rows, len(list))] {
		mark := "  "
		if l.ID == m.link {
			mark = m.styles.accent.paint(cursor) + " "
		}
		line := mark + row(linkColumns, widths, m.linkCells(l, widths))
		if l.ID == m.link {
			line = m.styles.marked(fit(line, r.w))
		}
		lines = append(lines, line)
	}
	if len(list) == 0 && m.loaded {
		lines = []string{m.styles.dim.paint("  no links" + map[bool]string{true: " match; esc in / clears the filter", false: "; n makes one"}[m.filter.text != ""])}
	}
	return m.titled(r, m.paneTitle("Links", m.pane == paneLinks), m.linksNote(list, top, rows), lines)
}

// linksTop is the first link shown, so that the selected one is among them.
func (m *Model) linksTop(rows int, list []gateway.LinkView) int {
	at := slices.IndexFunc(list, func(l gateway.LinkView) bool { return l.ID == m.link })
	top := at - rows/2
	return min(max(top, 0), max(len(list)-rows, 0))
}

func (m *Model) linksNote(list []gateway.LinkView, top, rows int) string {
	n := map[link.State]int{}
	for _, l := range m.over.Links {
		n[l.State]++
	}
	note := fmt.Sprintf("%d claimed%s%d open", n[link.Claimed], dot, n[link.Open])
	if m.filter.text != "" {
		note = "/" + fit(clean(m.filter.text), min(width(clean(m.filter.text)), 16)) + dot + note
	}
	if len(list) > rows && rows > 0 {
		note += fmt.Sprintf("%s%d–%d of %d", dot, top+1, min(top+rows, len(list)), len(list))
	}
	return m.styles.dim.paint(note)
}

func (m *Model) linkCells(l gateway.LinkView, widths []int) []string {
	s := m.styles
	in, out := linkBytes(l)
	door, from := "", ""
	if n := len(l.Sessions); n > 0 {
		door, from = clean(l.Sessions[0].Door), clean(l.Sessions[0].Address)
		if n > 1 {
			from = fmt.Sprintf("%s +%d", from, n-1)
		}
	}
	name := clean(l.Name)
	if l.State == link.Ended {
		name = s.dim.paint(name)
	}
	left, bar := m.timeLeft(l, widths[5])
	return []string{
		name, m.state(l), s.dim.paint(gpuText(l)), s.dim.paint(shortKey(l.Guest, max(widths[3], 1))), left, bar,
		door, s.dim.paint(from), bytesOrDot(s, in), bytesOrDot(s, out),
	}
}

func bytesOrDot(s styles, n int64) string {
	if n == 0 {
		return s.dim.paint("·")
	}
	return size(n)
}

func gpuText(l gateway.LinkView) string {
	if l.GPU == "" || l.GPU == "none" {
		return "–"
	}
	return clean(l.GPU)
}

// state is one word, in the colour of what it asks of the host.
func (m *Model) state(l gateway.LinkView) string {
	s := m.styles
	switch {
	case l.State == link.Ended && l.Container != "gone":
		return s.warn.paint("cleaning")
	case l.State == link.Ended:
		return s.dim.paint(clean(string(l.Reason)))
	case l.Pending != "":
		return s.warn.paint("waiting")
	case strings.HasPrefix(l.Container, "failed"):
		return s.bad.paint("failed")
	case strings.HasPrefix(l.Container, "stopped"):
		return s.warn.paint("stopped")
	case l.Container == "starting":
		return s.dim.paint("starting")
	case l.State == link.Claimed && len(l.Sessions) > 0:
		return s.good.paint("in use")
	}
	return string(l.State)
}

// timeLeft is how long the link goes on, and that as a part of all its time.
func (m *Model) timeLeft(l gateway.LinkView, w int) (text, picture string) {
	s := m.styles
	if l.State == link.Ended {
		return "", ""
	}
	left := deadline(l).Sub(m.now())
	from := l.CreatedAt
	if l.ClaimedAt != nil {
		from = *l.ClaimedAt
	}
	part := 0.0
	if all := deadline(l).Sub(from); all > 0 {
		part = float64(left) / float64(all)
	}
	on := s.accent
	switch {
	case l.State == link.Open:
		on = s.dim
	case left < time.Minute:
		on = s.bad
	case left < 10*time.Minute:
		on = s.warn
	}
	text = span(left)
	if on != s.accent {
		text = on.paint(text)
	}
	return text, bar(part, w, on, s.track)
}
