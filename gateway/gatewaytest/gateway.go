package gatewaytest

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	gossh "golang.org/x/crypto/ssh"

	"github.com/berth-gpu/berth/gateway"
	"github.com/berth-gpu/berth/gateway/link"
)

// Gateway is a running gateway and what it stands on.
type Gateway struct {
	*gateway.Server
	Addr  string
	Boxes *Boxes
	Clock *Clock
	Log   *Buffer

	t    testing.TB
	edit []func(*gateway.Server)
	stop func()
}

// Clock is the gateway's time; it runs, and can be moved.
type Clock struct {
	mu  sync.Mutex
	off time.Duration
}

// Now is the real time, moved.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.off)
}

// Move lets d pass.
func (c *Clock) Move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.off += d
}

// Buffer keeps what was logged.
type Buffer struct {
	mu  sync.Mutex
	buf []byte
}

// Write appends p.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.buf = append(b.buf, p...)
	return len(p), nil
}

// String is all that was written.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return string(b.buf)
}

// Start runs a gateway in a new state directory until the test ends, with its fields edited.
func Start(tb testing.TB, edit ...func(*gateway.Server)) *Gateway {
	tb.Helper()
	dir, err := os.MkdirTemp("", "berth") //nolint:usetesting // short: a unix socket's name has 108 bytes
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = os.RemoveAll(dir) })
	g := &Gateway{t: tb, edit: edit, Boxes: NewBoxes(dir), Clock: new(Clock), Log: new(Buffer)}
	tb.Cleanup(g.Boxes.Close)
	g.start(dir)
	tb.Cleanup(func() { g.stop() })
	return g
}

// Restart stops the gateway, in order, and starts it again on the same state and address.
func (g *Gateway) Restart() {
	g.t.Helper()
	g.stop()
	g.start(g.Dir)
}

func (g *Gateway) start(dir string) {
	g.t.Helper()
	book, err := link.OpenStore(link.Options{Path: filepath.Join(dir, "book.db"), Now: g.Clock.Now})
	if err != nil {
		g.t.Fatal(err)
	}
	s := &gateway.Server{
		Dir: dir, Book: book, Boxes: g.Boxes, Now: g.Clock.Now,
		Log: slog.New(slog.NewTextHandler(g.Log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Doors: func(token string) []gateway.DoorView {
			return []gateway.DoorView{{Name: "direct", Host: "127.0.0.1", SSH: "ssh " + token + "@127.0.0.1"}}
		},
	}
	for _, edit := range g.edit {
		edit(s)
	}
	if err := s.Start(context.Background()); err != nil {
		g.t.Fatal(err)
	}
	addr := g.Addr
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		g.t.Fatal(err)
	}
	g.Server, g.Addr = s, ln.Addr().String()
	served := make(chan error, 1)
	go func() { served <- s.Serve("direct", ln) }()
	var once sync.Once
	g.stop = func() {
		once.Do(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			defer cancel()
			if err := s.Shutdown(ctx); err != nil {
				g.t.Errorf("shutdown: %v", err)
			}
			if err := <-served; err != nil {
				g.t.Errorf("serve: %v", err)
			}
			if err := book.Close(); err != nil {
				g.t.Errorf("close book: %v", err)
			}
		})
	}
}

// Share makes a link with these terms and returns it with its token.
func (g *Gateway) Share(terms link.Terms) gateway.ShareResult {
	g.t.Helper()
	res, err := g.Server.Share(g.t.Context(), gateway.ShareRequest{Terms: terms})
	if err != nil {
		g.t.Fatal(err)
	}
	return res
}

// NewKey makes a guest's key.
func NewKey(tb testing.TB) gossh.Signer {
	tb.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	signer, err := gossh.NewSignerFromKey(key)
	if err != nil {
		tb.Fatal(err)
	}
	return signer
}

// Guest is how a guest of x/crypto logs in. Banners are collected.
type Guest struct {
	Token  string
	Keys   []gossh.Signer // none: keyboard-interactive without a prompt
	Banner string         // what the gateway said before the login was through
}

// Dial logs the guest in.
func (g *Gateway) Dial(guest *Guest) (*gossh.Client, error) {
	g.t.Helper()
	auth := []gossh.AuthMethod{gossh.KeyboardInteractive(func(_, _ string, q []string, _ []bool) ([]string, error) {
		return make([]string, len(q)), nil
	})}
	if len(guest.Keys) > 0 {
		auth = []gossh.AuthMethod{gossh.PublicKeys(guest.Keys...)}
	}
	client, err := gossh.Dial("tcp", g.Addr, &gossh.ClientConfig{
		User: guest.Token, Auth: auth, HostKeyCallback: gossh.InsecureIgnoreHostKey(),
		BannerCallback: func(m string) error { guest.Banner += m; return nil },
		Timeout:        20 * time.Second,
	})
	if err == nil {
		g.t.Cleanup(func() { _ = client.Close() })
	}
	return client, err
}
