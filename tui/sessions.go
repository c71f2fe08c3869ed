package tui

import (
	"fmt"
	"strings"

	"github.com/berth-gpu/berth/gateway"
	"github.com/berth-gpu/berth/gateway/link"
)

// sessionRow is a line of the sessions pane; clicking it selects session, if any.
type sessionRow struct {
	text    string
	session string
}

// sessionsPane shows who is in by the selected link and what they do.
func (m *Model) sessionsPane(r rect) []string {
	l, ok := m.selected()
	title := "Sessions"
	var lines []string
	if ok {
		title = "Sessions of " + clean(l.Name)
		for _, row := range m.sessionRows(l, r.w) {
			lines = append(lines, row.text)
		}
	}
	return m.titled(r, m.paneTitle(title, m.pane == paneSessions), "", lines)
}

// sessionRows are the lines about a link: each session with its channels, then the link's own
// exact facts.
func (m *Model) sessionRows(l gateway.LinkView, w int) []sessionRow {
	var rows []sessionRow
	if l.ID == "" {
		return nil
	}
	for _, s := range l.Sessions {
		rows = append(rows, m.sessionHead(s, w))
		for _, c := range s.Channels {
			rows = append(rows, sessionRow{"    " + clean(c), s.ID})
		}
	}
	if len(l.Sessions) == 0 {
		rows = append(rows, sessionRow{m.styles.dim.paint("  nobody is in"), ""})
	}
	for _, fact := range m.facts(l) {
		rows = append(rows, sessionRow{"  " + m.styles.dim.paint(fact), ""})
	}
	return rows
}

func (m *Model) sessionHead(s gateway.SessionView, w int) sessionRow {
	st := m.styles
	mark := "  "
	selected := m.pane == paneSessions && s.ID == m.session
	if selected {
		mark = st.accent.paint(cursor) + " "
	}
	age := span(m.now().Sub(s.Since))
	if selected {
		age = exact(s.Since.In(m.now().Location()))
	}
	rate := m.rates[s.ID]
	right := st.dim.paint(age)
	if rate.inRate+rate.outRate >= 1000 {
		right = upRune + size(int64(rate.inRate)) + "/s " + downRune + size(int64(rate.outRate)) + "/s " + right
	}
	room := w - 4 - width(right)
	line := mark + fit(clean(s.Address)+st.dim.paint(dot+clean(s.Door)+dot+clean(s.Client)), max(room, 8)) + " " + right
	if selected {
		line = st.marked(fit(line, w))
	}
	return sessionRow{line, s.ID}
}

// facts are what a host may want to tell their guest, exactly.
func (m *Model) facts(l gateway.LinkView) []string {
	zone := m.now().Location()
	var facts []string
	switch {
	case l.State == link.Ended:
		facts = append(facts, "ended: "+clean(string(l.Reason))+", "+clean(l.Container))
	case l.EndsAt != nil:
		facts = append(facts, "ends "+exact(l.EndsAt.In(zone)))
	default:
		facts = append(facts, "claim by "+exact(l.ClaimBy.In(zone)))
	}
	if l.State != link.Ended && l.Container != "ready" {
		facts = append(facts, "container "+clean(l.Container))
	}
	if l.Guest != "" {
		facts = append(facts, clean(l.Guest))
	}
	return append(facts, clean(l.Image)+dot+machineText(l.Terms)+dot+"net "+clean(l.Terms.Network))
}

func machineText(t link.Terms) string {
	var parts []string
	if t.CPUs > 0 {
		parts = append(parts, fmt.Sprintf("%g CPUs", t.CPUs))
	}
	if t.Memory > 0 {
		parts = append(parts, binSize(t.Memory))
	}
	if len(parts) == 0 {
		return "no limits"
	}
	return strings.Join(parts, ", ")
}
