package cloudflare

import (
	"context"
	"crypto/x509"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Protocol is what carries a connection to the edge.
type Protocol string

// The transports. Auto is HTTP/2, and QUIC where TCP to the edge is blocked.
const (
	Auto  Protocol = "auto"
	HTTP2 Protocol = "http2"
	QUIC  Protocol = "quic"
)

// connector keeps a tunnel's connections to the edge.
type connector struct {
	creds   Credentials
	client  [16]byte // one for the whole process
	version string
	want    int // connections

	renewable bool // a tunnel that is gone is given up, for another can be made
	protocol  Protocol
	edges     *edges
	roots     *x509.CertPool
	handler   http.Handler
	log       *slog.Logger
	grace     time.Duration
	dial      func(ctx context.Context, network, addr string) (net.Conn, error)
	changed   func(index uint8, up bool, err error) // told of every connection's fate, from any goroutine

	drain chan struct{} // closed when the tunnel is to end in order
	first chan struct{} // closed when connection 0 was first accepted

	mu       sync.Mutex
	applied  int32 // version of the dashboard's configuration
	ports    [maxConnections]int
	up       map[Protocol]int
	failing  map[Protocol]int       // dials in a row
	avoid    map[Protocol]time.Time // until when
	everUp   bool
	lastText [maxConnections]string
}

// prepare makes a connector ready to run.
func (t *connector) prepare() {
	t.drain, t.first = make(chan struct{}), make(chan struct{})
	t.applied = -1
	t.up, t.failing, t.avoid = map[Protocol]int{}, map[Protocol]int{}, map[Protocol]time.Time{}
}

// run keeps the connections until ctx ends, then ends them in order, for at most grace. It
// returns early only when the edge refuses the tunnel for good.
func (t *connector) run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	hard, kill := context.WithCancel(context.WithoutCancel(ctx))
	defer kill()
	stop := context.AfterFunc(ctx, func() {
		close(t.drain)
		timer := time.AfterFunc(t.grace, kill)
		context.AfterFunc(hard, func() { timer.Stop() })
	})
	defer stop()
	n, err := t.edges.load(ctx)
	if err != nil {
		return err
	}
	var running sync.WaitGroup
	for i := range min(t.want, n) {
		running.Go(func() {
			if i > 0 && !t.afterFirst(ctx, i) {
				return
			}
			if err := t.keep(ctx, hard, uint8(i)); err != nil {
				cancel(err)
			}
		})
	}
	running.Wait()
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

// afterFirst waits until connection 0 is registered, and then for this one's turn.
func (t *connector) afterFirst(ctx context.Context, i int) bool {
	select {
	case <-t.first:
		return pause(ctx, time.Duration(i)*spreadStart)
	case <-ctx.Done():
		return false
	}
}

// pause waits; false when ctx ends first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// keep is one connection's life: connect, serve, wait, again. It returns an error only when the
// edge does not want this tunnel.
func (t *connector) keep(ctx, hard context.Context, index uint8) error {
	defer t.edges.release(index)
	f := &fate{}
	for ctx.Err() == nil {
		delay := t.try(hard, index, f)
		switch {
		case ctx.Err() != nil:
		case f.final != nil:
			return f.final
		case f.moved:
			t.edges.refresh(ctx)
		}
		pause(ctx, delay)
	}
	return nil
}

// fate is what the tries of a connection have in common.
type fate struct {
	tries    int // that failed since the last success
	refusals int // in a row
	other    bool
	moved    bool  // the address could not be connected to
	final    error // there is no point in going on
}

// try makes one connection and serves it. It returns how long to wait before the next.
func (t *connector) try(hard context.Context, index uint8, f *fate) time.Duration {
	c := &edgeConn{t: t, index: index, attempts: uint8(min(f.tries, 255)), protocol: t.choose(), streams: newStreams()}
	c.addr = t.edges.pick(index, f.other)
	registered := false
	c.up = func(place string) {
		registered = true
		t.registered(c, place)
		if index == 0 {
			closeOnce(t.first)
		}
	}
	err := c.serve(hard)
	t.ended(c, registered, err)
	if registered {
		f.tries = 0
	}
	if f.refusals++; !errors.Is(err, ErrRefused) {
		f.refusals = 0
	}
	f.tries++
	delay := backoff(f.tries)
	var dial *dialError
	var refused *refusedError
	f.moved = errors.As(err, &dial)
	f.other = f.moved
	if errors.As(err, &refused) {
		f.other = refused.cause == causeDuplicate
		delay = max(delay, refused.after)
		if t.refusedForGood(index, refused, f.refusals) {
			f.final = refused
		}
	}
	return delay
}

// closeOnce closes ch unless it is closed. Only one goroutine may do so.
func closeOnce(ch chan struct{}) {
	select {
	case <-ch:
	default:
		close(ch)
	}
}

// refusedForGood says whether there is no point in going on. A new tunnel may be unknown at
// first, and one that has worked may come back.
func (t *connector) refusedForGood(index uint8, refused *refusedError, inARow int) bool {
	if index != 0 || inARow == 0 {
		return false
	}
	if t.renewable && inARow >= givenUpAfter {
		return true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.everUp && !strings.Contains(refused.cause, causeUnauthorized)
}

// givenUpAfter is how many refusals in a row mean that a quick tunnel is gone.
const givenUpAfter = 4

// backoff is how long to wait before try n, at most 32 s. It is random, so that an edge that
// comes back does not meet everybody at once.
func backoff(n int) time.Duration {
	return rand.N(time.Second << min(max(n, 1), 5)) //nolint:gosec // nobody gains by guessing it
}

// choose picks the transport of the next try: the preferred one, unless it fails just now and
// the other does not.
func (t *connector) choose() Protocol {
	preferred, other := t.preference()
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if other != "" && now.Before(t.avoid[preferred]) && !now.Before(t.avoid[other]) {
		return other
	}
	return preferred
}

// preference is the transport to use and the one to fall back to, if any.
func (t *connector) preference() (preferred, other Protocol) {
	switch t.protocol {
	case QUIC:
		return QUIC, HTTP2
	case HTTP2:
		return HTTP2, ""
	default:
		return HTTP2, QUIC
	}
}

// dialsBeforeOther is how many dials in a row have to fail before the other transport is tried.
// A UDP dial that fails has taken 5 s, and another address seldom helps.
func dialsBeforeOther(p Protocol) int {
	if p == QUIC {
		return 1
	}
	return 2
}

func (t *connector) registered(c *edgeConn, place string) {
	t.edges.worked(c.addr)
	t.mu.Lock()
	t.everUp = true
	t.up[c.protocol]++
	t.failing[c.protocol] = 0
	t.lastText[c.index] = ""
	t.mu.Unlock()
	t.log.Info("connected to the edge", "connection", c.index, "protocol", c.protocol, "place", place)
	t.changed(c.index, true, nil)
}

// ended notes how a connection ended, and says so once where it goes on like that.
func (t *connector) ended(c *edgeConn, wasUp bool, err error) {
	var dial *dialError
	dialled := !errors.As(err, &dial)
	if !dialled {
		t.edges.failedDial(c.addr)
	}
	t.mu.Lock()
	if wasUp {
		t.up[c.protocol]--
	}
	if !dialled && t.up[c.protocol] == 0 {
		t.failing[c.protocol]++
		if t.failing[c.protocol] >= dialsBeforeOther(c.protocol) {
			t.avoid[c.protocol] = time.Now().Add(familySpare)
		}
	}
	text := ""
	if err != nil {
		text = err.Error()
	}
	repeated := text == t.lastText[c.index]
	t.lastText[c.index] = text
	t.mu.Unlock()
	level := slog.LevelWarn
	if repeated || err == nil {
		level = slog.LevelDebug
	}
	t.log.Log(context.Background(), level, "connection to the edge ended", "connection", c.index, "protocol", c.protocol, "cause", err)
	t.changed(c.index, false, err)
}

// apply takes the version of a pushed configuration and returns the one in force.
func (t *connector) apply(version int32) int32 {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.applied = max(t.applied, version)
	return t.applied
}

func (t *connector) udpPort(index uint8) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ports[index]
}

func (t *connector) keepUDPPort(index uint8, port int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ports[index] = port
}
