package tui

import (
	tea "charm.land/bubbletea/v2"

	"github.com/berth-gpu/berth/gateway"
)

// Update takes a message in. It does no I/O: what it wants done it returns as a command.
func (m *Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.w, m.h = msg.Width, msg.Height
	case tea.ColorProfileMsg:
		m.restyle(depthOf(msg.String()), m.dark)
	case tea.BackgroundColorMsg:
		m.restyle(m.depth, msg.IsDark())
	case tea.KeyPressMsg:
		return m, m.key(msg)
	case tea.MouseClickMsg:
		m.click(msg.Mouse())
	case tea.MouseWheelMsg:
		m.wheel(msg.Mouse())
	case tickMsg:
		return m, m.tick()
	case spinMsg:
		return m, m.spin()
	case overviewMsg:
		m.overview(msg.over, msg.err)
	case receiptsMsg:
		m.receipts = msg.all
		if msg.err != nil {
			m.fail("receipts", msg.err)
		}
	case doneMsg:
		return m, m.done(msg)
	}
	return m, nil
}

// depthOf maps the names of colour profiles.
func depthOf(profile string) depth {
	switch profile {
	case "TrueColor", "ANSI256":
		return colours
	case "ANSI":
		return colours16
	}
	return noColour
}

func (m *Model) restyle(d depth, dark bool) {
	m.depth, m.dark, m.styles = d, dark, newStyles(d, dark)
}

// tick is the pulse: a new overview, unless the last is still on its way.
func (m *Model) tick() tea.Cmd {
	if !m.notice.until.IsZero() && m.now().After(m.notice.until) {
		m.notice = notice{}
	}
	if m.asking {
		return tick()
	}
	return tea.Batch(m.refresh(), tick())
}

func (m *Model) spin() tea.Cmd {
	if m.busy.what == "" {
		return nil
	}
	m.busy.step++
	return spin(spinEvery)
}

// overview takes a new overview in.
func (m *Model) overview(o gateway.Overview, err error) {
	m.asking = false
	if err != nil {
		m.lost = err
		return
	}
	before := m.visible()
	m.over, m.loaded, m.lost, m.answered = o, true, nil, m.now()
	m.record(o)
	m.keep(before)
}

// done takes in the end of a verb and asks for how things are now.
func (m *Model) done(d doneMsg) tea.Cmd {
	m.busy = busy{}
	if d.err != nil {
		m.fail(d.what, d.err)
	} else if d.text != "" {
		m.notice = notice{text: d.text, until: m.now().Add(noticeFor)}
	}
	if m.asking {
		return nil
	}
	return m.refresh()
}

// fail shows what went wrong until the next key.
func (m *Model) fail(what string, err error) {
	m.notice = notice{text: clean(what + ": " + err.Error()), hint: hintFor(err), bad: true}
}
