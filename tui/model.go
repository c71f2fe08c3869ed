package tui

import (
	"context"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/berth-gpu/berth/gateway"
)

// Options are what a screen stands on.
type Options struct {
	Host  Host
	Now   func() time.Time // if nil, time.Now
	Owner bool             // leaving the screen stops the gateway, so it is confirmed
	ASCII bool             // the terminal's locale is not UTF-8
	Still bool             // never ask by itself, for pictures and tests: Load is told what to show
}

// page is what the body of the screen shows.
type page int

const (
	pageMain page = iota
	pageHelp
	pageReceipts
	pageUsage
)

// pane is what the keys move in.
type pane int

const (
	paneLinks pane = iota
	paneSessions
)

// order is how links are sorted.
type order int

const (
	byAge order = iota
	byName
	byTime
	byBytes
	orders
)

func (o order) String() string { return [...]string{"age", "name", "time left", "bytes"}[o] }

// Model is the whole screen: Bubble Tea's one model. Its own goroutine alone touches it.
type Model struct {
	o      Options
	ctx    context.Context //nolint:containedctx // the life of the program: its commands end with it
	keys   []binding
	styles styles
	depth  depth
	dark   bool
	w, h   int

	over     gateway.Overview
	loaded   bool
	asking   bool      // an overview is on its way
	answered time.Time // when the last one came
	lost     error     // why none comes
	past     history
	rates    rates

	page      page
	pane      pane
	link      string // the selected link's id
	session   string // the selected session's id
	order     order
	hideEnded bool
	filter    filter
	scroll    int // of a page that is longer than the screen
	receipts  []gateway.Receipt

	busy    busy
	notice  notice
	confirm *question
}

// New returns a screen; ctx is the life of what it asks the gateway.
func New(ctx context.Context, o Options) *Model {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Model{
		o: o, ctx: ctx, keys: keyMap(), depth: colours, dark: true, styles: newStyles(colours, true),
		past: history{}, rates: rates{},
	}
}

// Init asks for the first overview and for the terminal's background.
func (m *Model) Init() tea.Cmd {
	if m.o.Still {
		return nil
	}
	return tea.Batch(m.refresh(), tick(), tea.RequestBackgroundColor)
}

// now is the time on the screen.
func (m *Model) now() time.Time { return m.o.Now() }

// selected returns the selected link.
func (m *Model) selected() (gateway.LinkView, bool) {
	for _, l := range m.over.Links {
		if l.ID == m.link {
			return l, true
		}
	}
	return gateway.LinkView{}, false
}

// selectedSession returns the selected session of the selected link, the first where none is.
func (m *Model) selectedSession() (gateway.SessionView, bool) {
	l, _ := m.selected()
	for _, s := range l.Sessions {
		if s.ID == m.session {
			return s, true
		}
	}
	if len(l.Sessions) > 0 {
		return l.Sessions[0], true
	}
	return gateway.SessionView{}, false
}

// notice is the line at the bottom: what was done, or what went wrong and what to do about it.
type notice struct {
	text  string
	hint  string
	bad   bool
	until time.Time // when it goes; zero: at the next key
}

// busy is a verb that the gateway has not answered yet.
type busy struct {
	what  string
	since time.Time
	step  int // of the spinner
}

// question asks before something that cannot be undone.
type question struct {
	text string
	yes  tea.Cmd
	what string // for the spinner, once it was answered
}
