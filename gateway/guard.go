package gateway

import (
	"crypto/sha256"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// Limits on what has not proved anything yet.
const (
	maxStrangers       = 1024 // connections still in their handshake, in all
	maxStrangersFromIP = 96   // and from one address
	maxGuesses         = 10   // wrong links from one address before it has to wait
	guessWindow        = 10 * time.Minute
	minBan             = 30 * time.Second
	maxBan             = 10 * time.Minute
)

// guard limits strangers by source address: half-made connections and wrong links. Where
// there are too many half-made connections the oldest of those that have hardly said a word
// goes, so that a flood of silent ones never keeps an honest guest out.
type guard struct {
	now func() time.Time

	mu        sync.Mutex
	strangers []*doorConn // oldest first
	perIP     map[netip.Prefix]int
	guesses   map[netip.Prefix]*guesses
}

type guesses struct {
	n     int
	last  time.Time
	until time.Time // banned until
	ban   time.Duration
}

func newGuard(now func() time.Time) *guard {
	return &guard{now: now, perIP: make(map[netip.Prefix]int), guesses: make(map[netip.Prefix]*guesses)}
}

// enter counts a new stranger; another may have to go for it.
func (g *guard) enter(c *doorConn) {
	source := sourceOf(c.RemoteAddr())
	g.mu.Lock()
	var out *doorConn
	switch {
	case g.perIP[source] >= maxStrangersFromIP:
		out = g.oldest(func(o *doorConn) bool { return sourceOf(o.RemoteAddr()) == source })
	case len(g.strangers) >= maxStrangers:
		out = g.oldest(func(*doorConn) bool { return true })
	}
	if out != nil {
		g.drop(out)
	}
	g.strangers = append(g.strangers, c)
	g.perIP[source]++
	c.onClose(func() { g.leave(c) })
	g.mu.Unlock()
	if out != nil {
		_ = out.Close()
	}
}

// hardlyAWord is more than a client's first line, and less than what opens a key exchange.
const hardlyAWord = 300

// oldest returns the one to go for a new one. The caller holds mu.
func (g *guard) oldest(match func(*doorConn) bool) *doorConn {
	var first *doorConn
	for _, c := range g.strangers {
		switch {
		case !match(c):
		case c.in.Load() < hardlyAWord:
			return c
		case first == nil:
			first = c
		}
	}
	return first
}

// drop forgets a stranger. The caller holds mu.
func (g *guard) drop(c *doorConn) {
	i := slices.Index(g.strangers, c)
	if i < 0 {
		return
	}
	g.strangers = slices.Delete(g.strangers, i, i+1)
	source := sourceOf(c.RemoteAddr())
	if g.perIP[source]--; g.perIP[source] <= 0 {
		delete(g.perIP, source)
	}
}

// leave says that c is no stranger any more, or gone.
func (g *guard) leave(c *doorConn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.drop(c)
}

// allowed refuses an address that has guessed too often.
func (g *guard) allowed(c *doorConn) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if e := g.guesses[sourceOf(c.RemoteAddr())]; e != nil && g.now().Before(e.until) {
		return errGuessing
	}
	return nil
}

// guessed counts a wrong link. A client offers it again with each of its keys, which is one
// guess; one that tries others over the same connection makes more.
func (g *guard) guessed(c *doorConn, name string) {
	guess := sha256.Sum256([]byte(name))
	g.mu.Lock()
	defer g.mu.Unlock()
	if c.guess == guess {
		return
	}
	c.guess = guess
	now := g.now()
	source := sourceOf(c.RemoteAddr())
	e := g.guesses[source]
	if e == nil || now.Sub(e.last) > guessWindow {
		g.forgetOld(now)
		e = &guesses{ban: minBan}
		g.guesses[source] = e
	}
	e.n++
	e.last = now
	if e.n >= maxGuesses {
		e.until = now.Add(e.ban)
		e.ban = min(2*e.ban, maxBan)
		e.n = 0
	}
}

func (g *guard) forgetOld(now time.Time) {
	for source, e := range g.guesses {
		if now.Sub(e.last) > guessWindow && now.After(e.until) {
			delete(g.guesses, source)
		}
	}
}

// sourceOf is the address that limits count by: one IPv4 address, or the /64 that an IPv6
// guest can pick from at will.
func sourceOf(a net.Addr) netip.Prefix {
	ap, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return netip.Prefix{}
	}
	addr := ap.Addr().Unmap().WithZone("")
	bits := 32
	if addr.Is6() {
		bits = 64
	}
	p, err := addr.Prefix(bits)
	if err != nil {
		return netip.Prefix{}
	}
	return p
}
