package tui

import tea "charm.land/bubbletea/v2"

// click selects what is under the pointer.
func (m *Model) click(at tea.Mouse) {
	if at.Button != tea.MouseLeft || m.confirm != nil {
		return
	}
	if m.page != pageMain {
		m.page = pageMain
		return
	}
	p := m.plan()
	switch {
	case p.links.holds(at.X, at.Y):
		m.pane = paneLinks
		list := m.visible()
		if i := m.linksTop(p.links.h-1, list) + at.Y - p.links.y - 1; at.Y > p.links.y && i < len(list) {
			m.link, m.session = list[i].ID, ""
		}
	case p.sessions.holds(at.X, at.Y):
		l, _ := m.selected()
		rows := m.sessionRows(l, p.sessions.w)
		if i := at.Y - p.sessions.y - 1; i >= 0 && i < len(rows) && rows[i].session != "" {
			m.pane, m.session = paneSessions, rows[i].session
		}
	}
}

// wheel moves the selection under the pointer, or scrolls a page.
func (m *Model) wheel(at tea.Mouse) {
	n := map[tea.MouseButton]int{tea.MouseWheelUp: -1, tea.MouseWheelDown: 1}[at.Button]
	if m.page != pageMain {
		m.scroll = min(max(m.scroll+3*n, 0), max(len(m.pageLines())-(m.h-frame), 0))
		return
	}
	if p := m.plan(); p.links.holds(at.X, at.Y) {
		m.pane = paneLinks
		m.move(n)
	}
}
