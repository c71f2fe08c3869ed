package cloudflare_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/berth-gpu/berth/tunnel/cloudflare"
	"github.com/berth-gpu/berth/tunnel/tunneltest"
)

const hostKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f"

// opened is a door that leads to an echo.
type opened struct {
	*cloudflare.Door
	edge   *tunneltest.Edge
	public string // address of the public side
	conns  chan net.Conn
}

// open opens a door on a fake edge; change may alter it before.
func open(t *testing.T, edge *tunneltest.Edge, change func(*cloudflare.Door)) *opened {
	t.Helper()
	public := edge.Public()
	t.Cleanup(public.Close)
	dir := t.TempDir()
	roots := filepath.Join(dir, "roots.pem")
	if err := os.WriteFile(roots, edge.RootsPEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	creds, err := cloudflare.ParseToken(edge.Tunnel().Token())
	if err != nil {
		t.Fatal(err)
	}
	d := &cloudflare.Door{
		Credentials: &creds, Hostname: edge.Tunnel().Hostname, Dir: dir, RootsFile: roots, Version: "test", Edge: edge.Addrs(),
		Public: public.Listener.Addr().String(), HostKeys: func() []string { return []string{hostKey} }, Log: slog.New(slog.DiscardHandler),
		Grace: 100 * time.Millisecond,
	}
	if testing.Verbose() {
		d.Log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	if change != nil {
		change(d)
	}
	ln, err := d.Listen(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	o := &opened{Door: d, edge: edge, public: d.Public, conns: make(chan net.Conn, 64)}
	go o.echo(ln)
	return o
}

func (o *opened) echo(ln net.Listener) {
	for {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		go func() {
			select {
			case o.conns <- c:
			default:
			}
			_, _ = io.Copy(c, c)
			_ = c.Close()
		}()
	}
}

func (o *opened) client() *http.Client {
	return &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: o.tls(),
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, o.public)
		},
	}}
}

func (o *opened) tls() *tls.Config {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(o.edge.RootsPEM())
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12, ServerName: o.edge.Tunnel().Hostname}
}

// get asks the public side for a path.
func (o *opened) get(t *testing.T, method, path string) (status int, header http.Header, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(soon(t), method, "https://"+o.edge.Tunnel().Hostname+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := o.client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(text)
}

func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// eventually polls until ok holds.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	ctx := soon(t)
	for !ok() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("in vain: %s", what)
		}
	}
}

func TestDoorOpens(t *testing.T) {
	for _, protocol := range []cloudflare.Protocol{cloudflare.Auto, cloudflare.QUIC} {
		t.Run(string(protocol), func(t *testing.T) {
			edge := tunneltest.Start(t, tunneltest.Options{})
			o := open(t, edge, func(d *cloudflare.Door) { d.Protocol = protocol })
			if _, ok := o.Lines("tok"); ok {
				t.Error("a door that is not open has lines")
			}
			eventually(t, "the door is up", func() bool { return o.Status().Up })
			if err := edge.WaitConns(soon(t), 4); err != nil {
				t.Fatal(err)
			}
			addrs := map[string]bool{}
			for _, c := range edge.Conns() {
				addrs[c.Addr] = true
				if c.QUIC != (protocol == cloudflare.QUIC) {
					t.Errorf("%v", c)
				}
			}
			if len(addrs) != 4 {
				t.Errorf("four connections use %d addresses", len(addrs))
			}
			lines, ok := o.Lines("tok")
			want := "ssh -o ProxyCommand='cloudflared access ssh --hostname %h' tok@" + edge.Tunnel().Hostname
			if !ok || lines.SSH != want {
				t.Errorf("lines are %+v", lines)
			}
			status, header, body := o.get(t, http.MethodGet, "/known-hosts")
			if status != 200 || body != edge.Tunnel().Hostname+" "+hostKey+"\n" || header.Get("Content-Type") != "text/plain; charset=utf-8" {
				t.Errorf("known hosts: %d, %q, %v", status, body, header)
			}
			if err := o.Close(); err != nil {
				t.Error(err)
			}
			if edge.Unregistrations() != 4 {
				t.Errorf("%d connections said goodbye", edge.Unregistrations())
			}
			if err := edge.WaitConns(soon(t), 0); err != nil {
				t.Error(err)
			}
		})
	}
}
