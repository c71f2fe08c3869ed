package tui

import (
	"context"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/berth-gpu/berth/gateway"
)

// How often the screen looks, how long an answer may take, and when waiting is shown.
const (
	refreshEvery = 500 * time.Millisecond
	askTimeout   = 5 * time.Second
	actTimeout   = 10 * time.Minute // a share may pull an image first
	busyAfter    = 200 * time.Millisecond
	spinEvery    = 100 * time.Millisecond
	noticeFor    = 6 * time.Second
)

// What an overview holds at most.
const (
	shownEvents = 200
	shownEnded  = 20
)

type (
	tickMsg     struct{}
	spinMsg     struct{}
	overviewMsg struct {
		over gateway.Overview
		err  error
	}
	receiptsMsg struct {
		all []gateway.Receipt
		err error
	}
	// doneMsg is the end of a verb.
	doneMsg struct {
		what string // "revoke ada"
		text string // what to say of it
		err  error
	}
)

// Load returns the message that shows an overview, for a Model with Still set.
func Load(o gateway.Overview) tea.Msg { return overviewMsg{over: o} }

func tick() tea.Cmd { return tea.Tick(refreshEvery, func(time.Time) tea.Msg { return tickMsg{} }) }

func spin(after time.Duration) tea.Cmd {
	return tea.Tick(after, func(time.Time) tea.Msg { return spinMsg{} })
}

// refresh asks for an overview.
func (m *Model) refresh() tea.Cmd {
	m.asking = true
	host, parent := m.o.Host, m.ctx
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(parent, askTimeout)
		defer cancel()
		o, err := host.Overview(ctx, gateway.OverviewOptions{Events: shownEvents, Ended: shownEnded})
		return overviewMsg{o, err}
	}
}

func (m *Model) loadReceipts() tea.Cmd {
	host, parent := m.o.Host, m.ctx
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(parent, askTimeout)
		defer cancel()
		all, err := host.Receipts(ctx)
		return receiptsMsg{all, err}
	}
}

// do runs a verb that says in the end what it did.
func (m *Model) do(what string, verb func(context.Context) (string, error)) tea.Cmd {
	parent := m.ctx
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(parent, actTimeout)
		defer cancel()
		text, err := verb(ctx)
		return doneMsg{what, text, err}
	}
}

// start shows a spinner for cmd if it takes long.
func (m *Model) start(what string, cmd tea.Cmd) tea.Cmd {
	m.busy = busy{what: what, since: m.now()}
	m.notice = notice{}
	return tea.Batch(cmd, spin(busyAfter))
}
