package tui

import (
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/berth-gpu/berth/gateway"
	"github.com/berth-gpu/berth/gateway/link"
)

// View draws the screen. It changes nothing.
func (m *Model) View() tea.View {
	content := m.render()
	if m.o.ASCII {
		content = toASCII(content)
	}
	v := tea.NewView(content)
	v.AltScreen = true
	v.MouseMode = tea.MouseModeCellMotion
	v.WindowTitle = "berth"
	return v
}

// render returns m.h lines of m.w columns each.
func (m *Model) render() string {
	p := m.plan()
	if m.w <= 0 || m.h <= 0 {
		return ""
	}
	if p.small {
		return m.tooSmall()
	}
	lines := make([]string, 0, m.h)
	lines = append(lines, m.header())
	if m.page == pageMain {
		lines = append(lines, m.body(p)...)
	} else {
		lines = append(lines, m.pageBody(m.h-frame)...)
	}
	lines = append(lines, m.messageLine(), m.keyLine())
	return strings.Join(lines, "\n")
}

func (m *Model) plan() plan {
	l, _ := m.selected()
	return layout(m.w, m.h, wants{cards: m.cardRows(), links: len(m.visible()), sessions: len(m.sessionRows(l, 80))})
}

// tooSmall is one line, whatever there is room for.
func (m *Model) tooSmall() string {
	lines := make([]string, m.h)
	for i := range lines {
		lines[i] = strings.Repeat(" ", m.w)
	}
	lines[0] = fit("berth: too small", m.w)
	if m.h > 1 {
		lines[1] = fit("40×8 or more", m.w)
	}
	return strings.Join(lines, "\n")
}

// body draws the panes and joins those that lie side by side.
func (m *Model) body(p plan) []string {
	lines := m.cardsPane(p.cards)
	lines = append(lines, m.linksPane(p.links)...)
	if p.peek.w == 0 || p.peek.x == 0 {
		lines = append(lines, m.sessionsPane(p.sessions)...)
		lines = append(lines, m.peekPane(p.peek)...)
		return append(lines, m.eventsPane(p.events)...)
	}
	left := append(m.sessionsPane(p.sessions), m.eventsPane(p.events)...)
	right := m.peekPane(p.peek)
	wall := m.styles.rule.paint(wallRune)
	for i := range left {
		joint := wall
		if i == 0 {
			joint = m.styles.rule.paint(teeRune)
		}
		lines = append(lines, left[i]+joint+right[i])
	}
	return lines
}

// titled is a pane: its title in a rule, then exactly r.h-1 lines of r.w columns.
func (m *Model) titled(r rect, title, note string, lines []string) []string {
	if r.h <= 0 {
		return nil
	}
	out := make([]string, 0, r.h)
	out = append(out, m.rule(r.w, title, note))
	for i := range r.h - 1 {
		line := ""
		if i < len(lines) {
			line = lines[i]
		}
		out = append(out, fit(line, r.w))
	}
	return out
}

// rule is a line with a title at the left and a note at the right; both may be styled.
func (m *Model) rule(w int, title, note string) string {
	title = fit(title, min(width(title), w-2))
	left := title + " "
	if width(note) > w-width(left)-4 {
		note = ""
	}
	right := ""
	if note != "" {
		right = " " + note
	}
	fill := max(w-width(left)-width(right), 0)
	return fit(left+m.styles.rule.paint(strings.Repeat(ruleRune, fill))+right, w)
}

func (m *Model) paneTitle(name string, focused bool) string {
	if focused {
		return m.styles.focus.paint(name)
	}
	return m.styles.title.paint(name)
}

// header is the top line: whose screen this is, what works, the time.
func (m *Model) header() string {
	s := m.styles
	left := s.strong.paint("berth") + " " + s.dim.paint(clean(m.over.Host))
	right := s.dim.paint(m.now().Format("15:04:05"))
	var parts []string
	switch {
	case m.lost != nil:
		parts = append(parts, s.bad.paint(offRune+" gateway does not answer"))
	case !m.loaded:
		parts = append(parts, s.dim.paint("connecting…"))
	default:
		parts = m.health()
	}
	mid := strings.Join(parts, "  ")
	room := m.w - width(left) - width(right) - 4
	if width(mid) > room {
		mid = fit(mid, max(room, 0))
	}
	gap := max(m.w-width(left)-width(mid)-width(right)-2, 1)
	return fit(left+strings.Repeat(" ", gap)+mid+"  "+right, m.w)
}

// health says for each part whether it works.
func (m *Model) health() []string {
	s := m.styles
	var parts []string
	if m.over.Docker == "" {
		parts = append(parts, s.good.paint(onRune)+" docker")
	} else {
		parts = append(parts, s.bad.paint(offRune+" docker "+clean(m.over.Docker)))
	}
	for _, d := range m.over.Doors {
		parts = append(parts, s.door(d))
	}
	return parts
}

// door is a door with how it is, in a word.
func (s styles) door(d gateway.DoorState) string {
	switch d.State {
	case "up":
		return s.good.paint(onRune) + " " + clean(d.Name)
	case "connecting":
		return s.warn.paint(offRune+" "+clean(d.Name)) + s.dim.paint(" connecting")
	}
	return s.bad.paint(offRune + " " + clean(d.Name) + " " + clean(d.State))
}

// messageLine is the line above the keys: a question, what is being done, what was done.
func (m *Model) messageLine() string {
	s := m.styles
	switch {
	case m.confirm != nil:
		return fit(s.warn.paint(m.confirm.text)+" "+s.strong.paint("y")+"/n", m.w)
	case m.filter.typing:
		return fit(s.accent.paint("filter: ")+clean(m.filter.text)+s.accent.paint("▏")+s.dim.paint("  enter keeps it, esc clears it"), m.w)
	case m.busy.what != "" && m.now().Sub(m.busy.since) >= busyAfter:
		spin := string(spins[m.busy.step%len(spins)])
		return fit(s.accent.paint(spin)+" "+m.busy.what+s.dim.paint("…"), m.w)
	case m.notice.bad:
		return m.errorLine()
	case m.notice.text != "":
		return fit(m.notice.text, m.w)
	case m.lost != nil:
		return fit(s.bad.paint(clean(m.lost.Error()))+dot+s.dim.paint(hintFor(m.lost)), m.w)
	case m.waiting() != "":
		return fit(s.warn.paint(m.waiting())+s.dim.paint(" wants in: a lets them"), m.w)
	}
	return strings.Repeat(" ", m.w)
}

// errorLine keeps the hint whole and cuts the error where both have no room.
func (m *Model) errorLine() string {
	s := m.styles
	hint := dot + m.notice.hint
	room := max(m.w-width(hint), m.w/2)
	text := m.notice.text
	if width(text) > room {
		text = fit(text, room)
	}
	return fit(s.bad.paint(text)+s.dim.paint(hint), m.w)
}

// waiting is a guest who needs the host's approval.
func (m *Model) waiting() string {
	for _, l := range m.over.Links {
		if l.State == link.Open && l.Pending != "" {
			return clean(l.Name) + ": " + clean(l.Pending)
		}
	}
	return ""
}

// keyLine is the bottom line: the keys that are of use now.
func (m *Model) keyLine() string {
	s := m.styles
	if m.page != pageMain {
		return fit(s.accent.paint("↑↓")+s.dim.paint(" scroll  ")+s.accent.paint("esc")+s.dim.paint(" back"), m.w)
	}
	line := ""
	for _, b := range m.keys {
		if b.short == "" {
			continue
		}
		part := s.accent.paint(b.Keys()[0]) + " " + s.dim.paint(b.short) + "  "
		if width(line)+width(part) > m.w-8 && b.act != actHelp {
			continue
		}
		line += part
	}
	return fit(line, m.w)
}
