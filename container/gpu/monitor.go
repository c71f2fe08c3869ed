package gpu

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// How a Monitor watches unless its Options say otherwise.
const (
	defaultEvery    = time.Second
	defaultPatience = 3 * time.Second
	absentEvery     = 30 * time.Second // how often a driver is looked for where there was none
	waitLimit       = time.Second      // for one Wait; an event ends it at once
	maxBackoff      = time.Minute      // between Waits that fail
)

// Options say what a Monitor watches and how.
type Options struct {
	Library  Library          // if nil, NVML("")
	Every    time.Duration    // how often the cards are looked at; if 0, every second
	Patience time.Duration    // how long a card may take to answer; if 0, 3 seconds
	Now      func() time.Time // if nil, time.Now
	Log      *slog.Logger     // if nil, nothing is logged
	OnXid    func(Xid)        // told of each hardware error; if nil, nobody is
	OnLook   func(Inventory)  // told of each look of Run's; if nil, nobody is
}

// Monitor looks at the cards. It keeps what the last look found, so that whoever asks never
// waits for the driver.
type Monitor struct {
	o Options

	calls calls

	mu      sync.Mutex // guards what is below
	last    Inventory
	absent  time.Time        // when there was no driver
	sick    map[string]Xid   // by UUID: the error that condemned it
	xids    map[string][]Xid // by UUID: the last few
	looking sync.Mutex       // one look at a time; taken before mu
}

// NewMonitor makes a Monitor that has not looked yet.
func NewMonitor(o Options) *Monitor {
	if o.Library == nil {
		o.Library = NVML("")
	}
	if o.Every <= 0 {
		o.Every = defaultEvery
	}
	if o.Patience <= 0 {
		o.Patience = defaultPatience
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Monitor{o: o, calls: calls{busy: map[string]time.Time{}, now: o.Now}, sick: map[string]Xid{}, xids: map[string][]Xid{}}
}

// Inventory returns what the last look found, without looking.
func (m *Monitor) Inventory() Inventory {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.last
}

// Run looks again and again and listens for errors until ctx ends. It returns soon after
// that, whatever the driver does: a call that hangs is left behind.
func (m *Monitor) Run(ctx context.Context) {
	go m.listen(ctx)
	tick := time.NewTicker(m.o.Every)
	defer tick.Stop()
	for {
		if now := m.Look(ctx); ctx.Err() == nil && m.o.OnLook != nil {
			m.o.OnLook(now)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Look looks now and returns what it found: within a few times Options.Patience, or when ctx
// ends. A card that does not answer in time is Silent until it does.
func (m *Monitor) Look(ctx context.Context) Inventory {
	m.looking.Lock()
	defer m.looking.Unlock()
	before := m.Inventory()
	if len(before.Cards) == 0 && before.Driver == "" && !m.due() {
		return before
	}
	now := m.look(ctx, before)
	if ctx.Err() != nil {
		return before
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last = now
	return now
}

// due reports whether it is time to look for a driver that was not there.
func (m *Monitor) due() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.o.Now()
	if !m.absent.IsZero() && now.Sub(m.absent) < absentEvery && now.After(m.absent) {
		return false
	}
	return true
}

func (m *Monitor) look(ctx context.Context, before Inventory) Inventory {
	now := Inventory{At: m.o.Now(), Driver: before.Driver, CUDA: before.CUDA, Simulated: before.Simulated, Cards: []Card{}}
	d, err := attempt(ctx, &m.calls, "open", m.o.Patience, m.o.Library.Open)
	if err != nil {
		now.Note = err.Error()
		m.mu.Lock()
		m.absent = now.At
		m.mu.Unlock()
		return m.withMissing(now, before, err)
	}
	now.Driver, now.CUDA, now.Simulated, now.Note = d.Version, d.CUDA, d.Simulated, d.Note
	n, err := attempt(ctx, &m.calls, "count", m.o.Patience, m.o.Library.Count)
	if err != nil {
		now.Note = "the driver does not tell how many cards there are: " + err.Error()
		n = len(before.Cards)
	}
	if n == 0 && now.Note == "" {
		now.Note = "the driver finds no card"
	}
	now.Cards = m.readAll(ctx, n, before)
	return m.withMissing(now, before, nil)
}

// readAll reads n cards at the same time: one that hangs costs the others nothing.
func (m *Monitor) readAll(ctx context.Context, n int, before Inventory) []Card {
	cards := make([]Card, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			c, err := attempt(ctx, &m.calls, fmt.Sprintf("card %d", i), m.o.Patience, func() (Card, error) { return m.o.Library.Read(i) })
			cards[i] = m.judge(i, c, err, before)
		})
	}
	all.Wait()
	return cards
}

// judge says how a card is doing from what reading it gave.
func (m *Monitor) judge(index int, c Card, err error, before Inventory) Card {
	if err != nil {
		known := c
		for _, old := range before.Cards {
			if old.UUID == c.UUID && c.UUID != "" || c.UUID == "" && old.Index == index {
				known = old
			}
		}
		state := Silent
		if errors.Is(err, ErrLost) {
			state = Lost
		}
		c = known.unread(index, state, err.Error())
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	c.Xids = m.xids[c.UUID]
	if c.State == Lost {
		delete(m.sick, c.UUID) // if it comes back it was reset
	}
	if x, ok := m.sick[c.UUID]; ok && c.State == OK {
		c.State, c.Detail = Unhealthy, x.String()
	}
	return c
}

// unread is a card of which only the name is still known: old numbers would be lies.
func (c Card) unread(index int, state State, why string) Card {
	return Card{
		Index: index, UUID: c.UUID, Name: c.Name, PCI: c.PCI, Minor: c.Minor, MIG: c.MIG, Slices: c.Slices,
		Memory: Memory{Total: c.Memory.Total}, State: state, Detail: why, Processes: []Process{},
	}
}

// withMissing adds the cards that were there before and are not listed now, as lost.
func (m *Monitor) withMissing(now, before Inventory, cause error) Inventory {
	for _, old := range before.Cards {
		if _, ok := now.Find(old.UUID); ok || old.UUID == "" {
			continue
		}
		why := "the driver does not list it any more"
		if cause != nil {
			why = cause.Error()
		}
		gone := old.unread(old.Index, Lost, why)
		gone.Xids = old.Xids
		if errors.Is(cause, errSilent) {
			gone.State = Silent
		}
		now.Cards = append(now.Cards, gone)
	}
	return now
}
