package tui

import (
	"context"
	"fmt"
	"time"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"

	"github.com/berth-gpu/berth/gateway"
	"github.com/berth-gpu/berth/gateway/link"
)

// key does what a key means where the screen is now.
func (m *Model) key(k tea.KeyPressMsg) tea.Cmd {
	if !m.notice.bad || k.String() != "?" {
		m.notice = notice{}
	}
	switch {
	case m.confirm != nil:
		return m.answer(k.String())
	case m.filter.typing:
		return m.typeFilter(k)
	case m.page != pageMain:
		return m.pageKey(k.String())
	}
	return m.act(actFor(m.keys, k.String()))
}

// act does one of the dashboard's acts.
func (m *Model) act(a act) tea.Cmd {
	switch a {
	case actUp:
		m.move(-1)
	case actDown:
		m.move(1)
	case actTop:
		m.move(-1 << 20)
	case actBottom:
		m.move(1 << 20)
	case actPane:
		m.switchPane()
	case actFilter:
		m.filter.typing = true
	case actSort:
		m.order = (m.order + 1) % orders
		m.say("sorted by " + m.order.String())
	case actEnded:
		before := m.visible()
		m.hideEnded = !m.hideEnded
		m.keep(before)
	case actHelp:
		m.open(pageHelp)
	case actReceipts:
		m.open(pageReceipts)
		return m.loadReceipts()
	case actUsage:
		m.open(pageUsage)
	case actSuspend:
		return tea.Suspend
	case actQuit:
		return m.quit()
	default:
		return m.linkAct(a)
	}
	return nil
}

func (m *Model) open(p page) { m.page, m.scroll = p, 0 }

func (m *Model) say(text string) {
	m.notice = notice{text: text, until: m.now().Add(noticeFor)}
}

func (m *Model) switchPane() {
	m.pane = paneSessions - m.pane
	if m.pane == paneSessions {
		s, ok := m.selectedSession()
		if !ok {
			m.pane = paneLinks
		}
		m.session = s.ID
	}
}

// quit leaves; where that stops the gateway it asks first.
func (m *Model) quit() tea.Cmd {
	if !m.o.Owner {
		return tea.Quit
	}
	guests := 0
	for _, l := range m.over.Links {
		guests += len(l.Sessions)
	}
	text := "Stop the gateway?"
	if guests > 0 {
		text = fmt.Sprintf("Stop the gateway? It closes %s; links and containers stay.", count(guests, "connection"))
	}
	m.confirm = &question{text: text, yes: tea.Quit}
	return nil
}

// count writes a number of things.
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// linkAct does what concerns the selected link.
func (m *Model) linkAct(a act) tea.Cmd {
	l, ok := m.selected()
	if a == "" || !ok {
		return nil
	}
	name := clean(l.Name)
	switch a {
	case actCopy:
		m.say("copied the id " + l.ID)
		return tea.SetClipboard(l.ID)
	case actExtend:
		return m.extend(l)
	case actApprove:
		return m.approve(l)
	case actRevoke:
		if l.State == link.Ended {
			m.say(name + " has ended already")
			return nil
		}
		m.confirm = &question{
			text: "Revoke " + name + "? Its container and files go" + keeps(l) + ".", what: "revoke " + name,
			yes: m.do("revoke "+name, func(ctx context.Context) (string, error) {
				v, err := m.o.Host.Revoke(ctx, l.ID)
				if err == nil && v.Container != "gone" {
					return name + " has ended; cleaning goes on", nil
				}
				return name + " has ended and is cleaned up", err
			}),
		}
	case actKick:
		return m.kick(l)
	default:
	}
	return nil
}

func keeps(l gateway.LinkView) string {
	if l.Terms.Workspace != "" {
		return ", but the workspace " + clean(l.Terms.Workspace) + " is kept"
	}
	return ""
}

// extendBy is what one press of the key adds.
const extendBy = time.Hour

func (m *Model) extend(l gateway.LinkView) tea.Cmd {
	name := clean(l.Name)
	return m.start("extend "+name, m.do("extend "+name, func(ctx context.Context) (string, error) {
		v, err := m.o.Host.Extend(ctx, l.ID, extendBy)
		return name + ": until " + exact(deadline(v).In(m.now().Location())), err
	}))
}

func (m *Model) approve(l gateway.LinkView) tea.Cmd {
	name := clean(l.Name)
	if !l.Terms.Approve || l.State != link.Open {
		m.say(name + " waits for nobody")
		return nil
	}
	return m.start("approve "+name, m.do("approve "+name, func(ctx context.Context) (string, error) {
		v, err := m.o.Host.Approve(ctx, l.ID)
		if v.Guest != "" {
			return clean(v.Guest) + " is in", err
		}
		return name + ": the next guest gets in", err
	}))
}

// kick closes the selected session, or all of the link's.
func (m *Model) kick(l gateway.LinkView) tea.Cmd {
	ref, name, n := l.ID, "all of "+clean(l.Name), len(l.Sessions)
	if s, ok := m.selectedSession(); ok && m.pane == paneSessions {
		ref, name, n = s.ID, clean(s.Address), 1
	}
	if n == 0 {
		m.say(clean(l.Name) + " has no connections")
		return nil
	}
	m.confirm = &question{
		text: fmt.Sprintf("Close %s (%s)? The link stays good.", name, count(n, "connection")), what: "kick " + name,
		yes: m.do("kick "+name, func(ctx context.Context) (string, error) {
			n, err := m.o.Host.Kick(ctx, ref)
			return "closed " + count(n, "connection"), err
		}),
	}
	return nil
}

// answer takes the answer to a question: y does it, anything else does not.
func (m *Model) answer(pressed string) tea.Cmd {
	q := m.confirm
	m.confirm = nil
	if pressed != "y" && pressed != "Y" {
		return nil
	}
	if q.what == "" {
		return q.yes
	}
	return m.start(q.what, q.yes)
}

// typeFilter edits the filter: enter keeps it, escape clears it.
func (m *Model) typeFilter(k tea.KeyPressMsg) tea.Cmd {
	before := m.visible()
	switch k.String() {
	case "enter":
		m.filter.typing = false
	case "esc", "ctrl+c":
		m.filter = filter{}
	case "backspace":
		_, n := utf8.DecodeLastRuneInString(m.filter.text)
		m.filter.text = m.filter.text[:len(m.filter.text)-n]
	default:
		if k.Text != "" && len(m.filter.text) < 64 {
			m.filter.text += k.Text
		}
	}
	m.keep(before)
	return nil
}

// pageKey is for pages that are read: they scroll, and any other key leaves them.
func (m *Model) pageKey(pressed string) tea.Cmd {
	switch actFor(m.keys, pressed) {
	case actUp:
		m.scroll--
	case actDown:
		m.scroll++
	case actTop:
		m.scroll = 0
	case actBottom:
		m.scroll = 1 << 20
	case actSuspend:
		return tea.Suspend
	default:
		switch pressed {
		case "pgdown", "space":
			m.scroll += max(m.h-frame-1, 1)
		case "pgup":
			m.scroll -= max(m.h-frame-1, 1)
		default:
			m.page = pageMain
		}
	}
	m.scroll = min(max(m.scroll, 0), max(len(m.pageLines())-(m.h-frame), 0))
	return nil
}
