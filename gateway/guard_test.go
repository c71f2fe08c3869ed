package gateway

import (
	"errors"
	"fmt"
	"net"
	"testing"
	"time"
)

// from is a connection from an address, which notes that it was closed.
func from(address string) *doorConn {
	return newDoorConn(&farConn{address: address}, "test")
}

type farConn struct {
	net.Conn
	address string
	closed  bool
}

func (c *farConn) RemoteAddr() net.Addr { return farAddr(c.address) }
func (c *farConn) Close() error         { c.closed = true; return nil }

type farAddr string

func (farAddr) Network() string  { return "tcp" }
func (a farAddr) String() string { return string(a) }

func isClosed(c *doorConn) bool { return c.Conn.(*farConn).closed }

func TestGuesses(t *testing.T) {
	tests := []struct {
		name  string
		guess func(g *guard)
		from  string
		want  error
	}{
		{"nine wrong links", func(g *guard) { guessTimes(g, 9, "192.0.2.1:%d") }, "192.0.2.1:1", nil},
		{"ten wrong links", func(g *guard) { guessTimes(g, 10, "192.0.2.1:%d") }, "192.0.2.1:1", errGuessing},
		{"another address", func(g *guard) { guessTimes(g, 10, "192.0.2.1:%d") }, "192.0.2.2:1", nil},
		{"an IPv6 guest picks addresses at will", func(g *guard) { guessTimes(g, 10, "[2001:db8::%d]:22") }, "[2001:db8::ffff]:1", errGuessing},
		{"the next IPv6 network", func(g *guard) { guessTimes(g, 10, "[2001:db8::%d]:22") }, "[2001:db8:0:1::1]:1", nil},
		{"IPv4 in IPv6 is IPv4", func(g *guard) { guessTimes(g, 10, "[::ffff:192.0.2.1]:%d") }, "192.0.2.1:1", errGuessing},
		{"the same link with twelve keys", func(g *guard) {
			for c, i := from("192.0.2.1:1"), 0; i < 12; i++ {
				g.guessed(c, "a link with a slip in it")
			}
		}, "192.0.2.1:1", nil},
		{"ten links over one connection", func(g *guard) {
			for c, i := from("192.0.2.1:1"), 0; i < 10; i++ {
				g.guessed(c, fmt.Sprint("guess ", i))
			}
		}, "192.0.2.1:1", errGuessing},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := newGuard(time.Now)
			tt.guess(g)
			if err := g.allowed(from(tt.from)); !errors.Is(err, tt.want) {
				t.Errorf("allowed says %v, want %v", err, tt.want)
			}
		})
	}
}

// guessTimes makes n wrong guesses, each over a connection of its own.
func guessTimes(g *guard, n int, address string) {
	for i := range n {
		g.guessed(from(fmt.Sprintf(address, i+1)), fmt.Sprint("guess ", i))
	}
}

// TestGuessingCostsMoreEachTime: the wait doubles up to ten minutes, and a quiet while is forgiven.
func TestGuessingCostsMoreEachTime(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	g := newGuard(func() time.Time { return now })
	const who = "192.0.2.1:1"
	for _, wait := range []time.Duration{30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 10 * time.Minute, 10 * time.Minute} {
		guessTimes(g, maxGuesses, "192.0.2.1:%d")
		now = now.Add(wait - time.Second)
		if g.allowed(from(who)) == nil {
			t.Fatalf("let in again before %v", wait)
		}
		now = now.Add(time.Second)
		if err := g.allowed(from(who)); err != nil {
			t.Fatalf("after %v: %v", wait, err)
		}
	}
	now = now.Add(guessWindow + time.Second)
	guessTimes(g, maxGuesses-1, "192.0.2.1:%d")
	if err := g.allowed(from(who)); err != nil {
		t.Errorf("old guesses are still held against them: %v", err)
	}
}

// TestManyAddressesAreForgotten: whoever has addresses without number fills no memory for good.
func TestManyAddressesAreForgotten(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	g := newGuard(func() time.Time { return now })
	for i := range 1000 {
		g.guessed(from(fmt.Sprintf("10.0.%d.%d:1", i/250, i%250)), "guess")
	}
	now = now.Add(guessWindow + time.Second)
	g.guessed(from("192.0.2.1:1"), "guess")
	if n := len(g.guesses); n != 1 {
		t.Errorf("%d addresses are remembered", n)
	}
}

// TestSilentFlood: too many half-made connections cost the flooder's oldest, nobody else's.
func TestSilentFlood(t *testing.T) {
	g := newGuard(time.Now)
	honest := from("198.51.100.7:1")
	g.enter(honest)
	var flood []*doorConn
	for i := range 3 * maxStrangersFromIP {
		c := from(fmt.Sprint("192.0.2.1:", i))
		flood = append(flood, c)
		g.enter(c)
	}
	if isClosed(honest) {
		t.Error("an honest guest was closed for another's flood")
	}
	busy := from("192.0.2.1:9999")
	g.enter(busy)
	busy.in.Add(hardlyAWord)
	for range 2 * maxStrangersFromIP {
		g.enter(from("192.0.2.1:1"))
	}
	if isClosed(busy) {
		t.Error("a guest in the middle of a login was closed for silent ones from the same address")
	}
	for i, c := range flood {
		if !isClosed(c) {
			t.Fatalf("connection %d is still open", i)
		}
	}
	if n := len(g.strangers); n != maxStrangersFromIP+1 {
		t.Errorf("%d strangers are held", n)
	}
}

// TestSilentFloodFromEverywhere: beyond the limit over all addresses the oldest goes, and all
// is forgotten when they are gone.
func TestSilentFloodFromEverywhere(t *testing.T) {
	g := newGuard(time.Now)
	var all []*doorConn
	for i := range maxStrangers + 10 {
		c := from(fmt.Sprintf("10.%d.%d.1:1", i/250, i%250))
		all = append(all, c)
		g.enter(c)
	}
	for i, c := range all {
		if isClosed(c) != (i < 10) {
			t.Fatalf("connection %d: closed is %v", i, isClosed(c))
		}
	}
	for _, c := range all {
		_ = c.Close()
	}
	if len(g.strangers) != 0 || len(g.perIP) != 0 {
		t.Errorf("%d strangers and %d addresses are still held", len(g.strangers), len(g.perIP))
	}
}
