package tui

import (
	"strings"

	"github.com/berth-gpu/berth/gateway"
)

// eventsPane shows what happened last, the newest at the bottom.
func (m *Model) eventsPane(r rect) []string {
	events := m.over.Events
	events = events[max(0, len(events)-max(r.h-1, 0)):]
	names := map[string]string{}
	for _, l := range m.over.Links {
		names[l.ID] = clean(l.Name)
	}
	lines := make([]string, 0, len(events))
	for _, e := range events {
		lines = append(lines, m.eventLine(e, names))
	}
	return m.titled(r, m.paneTitle("Events", false), "", lines)
}

func (m *Model) eventLine(e gateway.Event, names map[string]string) string {
	s := m.styles
	name := names[e.Link]
	if name == "" {
		name = clean(e.Link)
	}
	parts := []string{}
	for _, p := range []string{name, clean(e.Detail), hostOf(clean(e.Address))} {
		if p != "" {
			parts = append(parts, p)
		}
	}
	return " " + s.dim.paint(e.Time.In(m.now().Location()).Format("15:04")) + " " + eventStyle(s, e.Event).paint(clean(e.Event)) + " " + strings.Join(parts, s.dim.paint(dot))
}

// eventStyle colours the few events that a host looks for.
func eventStyle(s styles, name string) style {
	switch name {
	case "link.claimed", "session.opened":
		return s.good
	case "link.waiting", "guessing":
		return s.warn
	case "link.ended", "session.kicked":
		return s.strong
	}
	return ""
}

// hostOf leaves the port out, which says nothing.
func hostOf(address string) string {
	if i := strings.LastIndexByte(address, ':'); i > 0 {
		return address[:i]
	}
	return address
}
