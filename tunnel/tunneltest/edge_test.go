package tunneltest_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/berth-gpu/berth/tunnel/internal/wire"
	"github.com/berth-gpu/berth/tunnel/tunneltest"
)

// peer is a connector made by hand, as good or as bad as a case wants it.
type peer struct {
	edge    *tunneltest.Edge
	alpn    []string
	name    string
	reg     func(*wire.Registration)
	answer  http.HandlerFunc
	control func(rw io.ReadWriter, call func(method uint16, body wire.Body))
}

type streamRW struct {
	io.Reader
	w http.ResponseWriter
}

func (s streamRW) Write(p []byte) (int, error) {
	n, err := s.w.Write(p)
	if err == nil {
		err = http.NewResponseController(s.w).Flush()
	}
	return n, err
}

// connect runs the peer's connection until the test ends.
func (p *peer) connect(t *testing.T) {
	t.Helper()
	if p.name == "" {
		p.name = "h2.cftunnel.com"
	}
	conf := &tls.Config{RootCAs: p.edge.Roots(), ServerName: p.name, NextProtos: p.alpn, MinVersion: tls.VersionTLS12}
	c, err := tls.Dial("tcp", p.edge.Addrs()[0], conf)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	var only http.Protocols
	only.SetUnencryptedHTTP2(true)
	srv := &http.Server{Protocols: &only, Handler: http.HandlerFunc(p.serve), ReadHeaderTimeout: time.Minute}
	l := &oneListener{conns: make(chan net.Conn, 1)}
	l.conns <- struct{ net.Conn }{c}
	go func() { _ = srv.Serve(l) }()
	t.Cleanup(func() { srv.Close() })
}

type oneListener struct{ conns chan net.Conn }

func (l *oneListener) Accept() (net.Conn, error) {
	c, ok := <-l.conns
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}
func (l *oneListener) Close() error   { close(l.conns); return nil }
func (l *oneListener) Addr() net.Addr { return &net.TCPAddr{} }

func (p *peer) serve(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Cf-Cloudflared-Proxy-Connection-Upgrade") != "control-stream" {
		p.answer(w, r)
		return
	}
	rw := streamRW{r.Body, w}
	question := uint32(0)
	call := func(method uint16, body wire.Body) {
		question++
		c := wire.Call{Question: question, Interface: wire.Registrar, Method: method, Target: wire.Target{Promised: true}}
		_, _ = rw.Write(wire.EncodeCall(c, body))
	}
	_, _ = rw.Write(wire.Bootstrap(0))
	t := p.edge.Tunnel()
	client := make([]byte, 16)
	client[6], client[8] = 0x40, 0x80
	reg := &wire.Registration{
		Account: t.Account, Secret: t.Secret, Tunnel: t.ID[:], Client: client, Version: "1.0", Arch: "linux_amd64",
		Features: []string{"serialized_headers", "allow_remote_config"},
	}
	if p.reg != nil {
		p.reg(reg)
	}
	call(wire.MethodRegister, reg)
	if p.control != nil {
		p.control(rw, call)
	}
	for {
		m, err := wire.Read(rw)
		if err != nil {
			return
		}
		switch m.Kind {
		case wire.KindReturn:
			_, _ = rw.Write(wire.Finish(m.ID))
		case wire.KindBootstrap:
			_, _ = rw.Write(wire.EncodeException(m.ID, wire.ExceptionError{Kind: wire.ExceptionUnimplemented}))
		default: // nothing else comes from this edge
		}
	}
}

func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func packed(h http.Header) string {
	var pairs []string
	for k, vv := range h {
		for _, v := range vv {
			pairs = append(pairs, base64.RawStdEncoding.EncodeToString([]byte(k))+":"+base64.RawStdEncoding.EncodeToString([]byte(v)))
		}
	}
	return strings.Join(pairs, ";")
}

// reply answers any request well, but for what change does to it.
func reply(change func(h http.Header)) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cf-Cloudflared-Response-Meta", `{"src":"origin"}`)
		w.Header().Set("Cf-Cloudflared-Response-Headers", packed(http.Header{"X-Origin": {"yes"}}))
		if change != nil {
			change(w.Header())
		}
		_ = http.NewResponseController(w).Flush() // or the server adds a length that no list has
		_, _ = io.WriteString(w, "hello")
	}
}

// ask sends one guest's request and reads the whole answer.
func ask(t *testing.T, e *tunneltest.Edge) (body string, header http.Header, err error) {
	t.Helper()
	r, err := http.NewRequestWithContext(soon(t), http.MethodGet, "https://gpu.example.test/hello?x=1", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.RemoteAddr = "203.0.113.9:4711"
	resp, err := e.Do(r)
	if err != nil {
		return "", nil, err
	}
	defer resp.Body.Close()
	read, err := io.ReadAll(resp.Body)
	return string(read), resp.Header, err
}

func TestGoodPeer(t *testing.T) {
	e := tunneltest.Start(t, tunneltest.Options{})
	var seen http.Header
	var path, host string
	p := &peer{edge: e, answer: func(w http.ResponseWriter, r *http.Request) {
		seen, path, host = r.Header.Clone(), r.URL.RequestURI(), r.Host
		reply(nil)(w, r)
	}}
	p.connect(t)
	if err := e.WaitConns(soon(t), 1); err != nil {
		t.Fatal(err)
	}
	body, header, err := ask(t, e)
	if err != nil {
		t.Fatal(err)
	}
	if body != "hello" || header.Get("X-Origin") != "yes" || len(header) != 1 {
		t.Fatalf("got %q, %v", body, header)
	}
	if seen.Get("Cf-Connecting-Ip") != "203.0.113.9" || path != "/hello?x=1" || host != "gpu.example.test" {
		t.Fatalf("the handler saw %v, %q, %q", seen, path, host)
	}
	r := e.Registrations()[0]
	if r.Index != 0 || !bytes.Equal(r.Secret, e.Tunnel().Secret) {
		t.Fatalf("registration %+v", r)
	}
	e.Drop()
	if err := e.WaitConns(soon(t), 0); err != nil {
		t.Fatal(err)
	}
	if _, _, err := ask(t, e); !errors.Is(err, tunneltest.ErrNoConnection) {
		t.Fatalf("got %v", err)
	}
}

func TestBadPeers(t *testing.T) {
	for name, c := range map[string]struct {
		peer peer
		want string
	}{
		"offers protocols":    {peer{alpn: []string{"h2"}}, "application protocols"},
		"other server name":   {peer{name: "localhost"}, "server name"},
		"fixed client id":     {peer{reg: func(r *wire.Registration) { r.Client = make([]byte, 16) }}, "no random UUID"},
		"no packed headers":   {peer{reg: func(r *wire.Registration) { r.Features = []string{"allow_remote_config"} }}, "serialized_headers"},
		"strange version":     {peer{reg: func(r *wire.Registration) { r.Version = "a b" }}, "version"},
		"second before first": {peer{reg: func(r *wire.Registration) { r.Index = 2 }}, "before index 0"},
		"no meta":             {peer{answer: reply(func(h http.Header) { h.Del("Cf-Cloudflared-Response-Meta") })}, "meta"},
		"no list":             {peer{answer: reply(func(h http.Header) { h.Del("Cf-Cloudflared-Response-Headers") })}, "packed headers"},
		"padded base64":       {peer{answer: reply(func(h http.Header) { h.Set("Cf-Cloudflared-Response-Headers", "WA==:WA==") })}, "packed pair"},
		"edge's own header":   {peer{answer: reply(func(h http.Header) { h.Set("Cf-Cloudflared-Response-Headers", packed(http.Header{"Cf-Int-X": {""}})) })}, "edge's own"},
		"two registrations":   {peer{control: func(_ io.ReadWriter, call func(uint16, wire.Body)) { call(wire.MethodRegister, &wire.Registration{}) }}, "second registration"},
		"finish of nothing":   {peer{control: func(rw io.ReadWriter, _ func(uint16, wire.Body)) { _, _ = rw.Write(wire.Finish(99)) }}, "not open"},
		"nonsense":            {peer{control: func(rw io.ReadWriter, _ func(uint16, wire.Body)) { _, _ = rw.Write(bytes.Repeat([]byte{0xff}, 64)) }}, "malformed"},
		"calls something else": {peer{control: func(rw io.ReadWriter, _ func(uint16, wire.Body)) {
			_, _ = rw.Write(wire.EncodeCall(wire.Call{Question: 5, Target: wire.Target{ID: 3}}, &wire.Empty{}))
		}}, "call on capability"},
	} {
		t.Run(name, func(t *testing.T) {
			e := tunneltest.Start(t, tunneltest.Options{})
			defer e.ForgiveViolations()
			p := c.peer
			p.edge = e
			p.connect(t)
			if p.answer != nil {
				if err := e.WaitConns(soon(t), 1); err != nil {
					t.Fatal(err)
				}
				if _, _, err := ask(t, e); err == nil {
					t.Fatal("the answer was accepted")
				}
			}
			found := func() bool { return strings.Contains(strings.Join(e.Violations(), "\n"), c.want) }
			if err := poll(soon(t), found); err != nil {
				t.Fatalf("violations %q", e.Violations())
			}
		})
	}
}

// poll looks again and again until ok holds.
func poll(ctx context.Context, ok func() bool) error {
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func TestRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		reg  func(*wire.Registration)
		want string
	}{
		"wrong secret":   {func(r *wire.Registration) { r.Secret = []byte("guess") }, "Invalid tunnel secret"},
		"unknown tunnel": {func(r *wire.Registration) { r.Tunnel = make([]byte, 16) }, "Tunnel not found"},
	} {
		t.Run(name, func(t *testing.T) {
			e := tunneltest.Start(t, tunneltest.Options{})
			got := make(chan wire.Outcome, 1)
			p := &peer{edge: e, reg: c.reg, control: func(rw io.ReadWriter, _ func(uint16, wire.Body)) {
				for {
					m, err := wire.Read(rw)
					if err != nil {
						return
					}
					var o wire.Outcome
					if m.ID == 1 && m.Decode(&o) == nil {
						got <- o
						return
					}
				}
			}}
			p.connect(t)
			if o := <-got; !strings.Contains(o.Cause, c.want) {
				t.Fatalf("got %+v", o)
			}
		})
	}
}
