package tui

// peekPane shows the terminal of the selected link's guest.
func (m *Model) peekPane(r rect) []string {
	return m.titled(r, m.paneTitle("Screen", false), "", nil)
}
