package ws_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"github.com/berth-gpu/berth/tunnel/internal/ws"
)

func noise(n int) []byte {
	b := make([]byte, n)
	r := rand.New(rand.NewPCG(1, uint64(n)))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// echo sends back what comes until the end.
func echo(c io.ReadWriteCloser) {
	_, _ = io.Copy(c, c)
	_ = c.Close()
}

func TestSizes(t *testing.T) {
	srv, conns := serve(t)
	c, _ := dial(t, srv, "")
	go echo(<-conns)
	for _, n := range []int{1, 2, 125, 126, 127, 4096, 65535, 65536, 65537, 128 << 10, 128<<10 + 1, 1 << 20} {
		want := noise(n)
		go func() { _, _ = c.Write(want) }()
		got := make([]byte, n)
		if _, err := io.ReadFull(c, got); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%d bytes came back wrong: %v", n, err)
		}
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// An independent implementation at the other end, both ways round.
func TestPeers(t *testing.T) {
	want := noise(3 << 20)
	t.Run("their client", func(t *testing.T) {
		srv, conns := serve(t)
		theirs, _, err := websocket.Dial(t.Context(), srv.URL, &websocket.DialOptions{ //nolint:bodyclose // the library takes it away
			HTTPClient: srv.Client(), CompressionMode: websocket.CompressionContextTakeover,
		})
		if err != nil {
			t.Fatal(err)
		}
		go echo(<-conns)
		exchange(t, websocket.NetConn(t.Context(), theirs, websocket.MessageBinary), want)
		if err := theirs.Close(websocket.StatusNormalClosure, "bye"); err != nil {
			t.Errorf("closing: %v", err)
		}
	})
	t.Run("their server", func(t *testing.T) {
		srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			c, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{"berth"}})
			if err == nil {
				echo(websocket.NetConn(t.Context(), c, websocket.MessageBinary))
			}
		}))
		defer srv.Close()
		ours, agreed := dial(t, srv, "berth")
		if agreed != "berth" {
			t.Errorf("agreed on %q", agreed)
		}
		exchange(t, ours, want)
	})
}

func exchange(t *testing.T, c io.ReadWriter, want []byte) {
	t.Helper()
	go func() {
		for b := want; len(b) > 0; {
			n := min(len(b), 32<<10)
			if _, err := c.Write(b[:n]); err != nil {
				return
			}
			b = b[n:]
		}
	}()
	got := make([]byte, len(want))
	if _, err := io.ReadFull(c, got); err != nil || !bytes.Equal(got, want) {
		t.Fatalf("it came back wrong: %v", err)
	}
}

func TestSubprotocol(t *testing.T) {
	srv, conns := serve(t, "berth.1")
	for offer, want := range map[string]string{"": "", "berth.1": "berth.1", "other": ""} {
		_, agreed := dial(t, srv, offer)
		(<-conns).Close()
		if agreed != want {
			t.Errorf("offered %q, agreed on %q", offer, agreed)
		}
	}
}

// masked is a client's frame.
func masked(first byte, payload []byte) []byte {
	mask := [4]byte{1, 2, 3, 4}
	b := []byte{first, 0x80 | byte(len(payload))}
	if len(payload) > 125 {
		b = []byte{first, 0x80 | 126, byte(len(payload) >> 8), byte(len(payload))}
	}
	b = append(b, mask[:]...)
	for i, v := range payload {
		b = append(b, v^mask[i&3])
	}
	return b
}

func TestReads(t *testing.T) {
	long := noise(4096)
	parts := bytes.Join([][]byte{
		masked(0x02, long), masked(0x00, long), masked(0x89, []byte("are you there")), masked(0x00, nil), masked(0x80, long), // as cloudflared sends 16 KiB
		masked(0x81, []byte("text")), masked(0x82, nil), masked(0x8a, []byte("pong nobody asked for")), masked(0x82, []byte("end")),
	}, nil)
	want := append(bytes.Repeat(long, 3), "textend"...)
	for _, cut := range []int{1, 2, 3, 7, 100, 4096, len(parts)} {
		c, server := raw(t)
		go func() {
			for b := parts; len(b) > 0; {
				n := min(cut, len(b))
				_, _ = c.Write(b[:n])
				b = b[n:]
			}
			_, _ = c.Write(masked(0x88, []byte{0x03, 0xe9}))
		}()
		got, err := io.ReadAll(server)
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("in pieces of %d: %d bytes of %d, %v", cut, len(got), len(want), err)
		}
		answer := make([]byte, 2+13+4)
		if _, err := io.ReadFull(c, answer); err != nil || string(answer) != "\x8a\x0dare you there\x88\x02\x03\xe9" {
			t.Errorf("the server answered %q, %v", answer, err)
		}
	}
}

func TestBrokenProtocol(t *testing.T) {
	tests := []struct {
		name string
		sent []byte
		err  error
	}{
		{"not masked", []byte{0x82, 1, 'x'}, ws.ErrProtocol},
		{"reserved bit", masked(0xc2, []byte("x")), ws.ErrProtocol},
		{"unknown data frame", masked(0x83, []byte("x")), ws.ErrProtocol},
		{"unknown control frame", masked(0x8b, nil), ws.ErrProtocol},
		{"long ping", masked(0x89, noise(126)), ws.ErrProtocol},
		{"ping in parts", masked(0x09, []byte("x")), ws.ErrProtocol},
		{"continues nothing", masked(0x80, []byte("x")), ws.ErrProtocol},
		{"begins twice", append(masked(0x02, nil), masked(0x82, nil)...), ws.ErrProtocol},
		{"endless frame", append([]byte{0x82, 0xff, 0xff}, noise(16)...), ws.ErrProtocol},
		{"close with one byte", masked(0x88, []byte("x")), ws.ErrProtocol},
		{"cut in a header", []byte{0x82, 0xfe, 1}, io.ErrUnexpectedEOF},
		{"cut in a frame", masked(0x82, noise(50))[:20], io.ErrUnexpectedEOF},
		{"cut in a ping", masked(0x89, noise(50))[:20], io.ErrUnexpectedEOF},
		{"cut between frames", masked(0x82, noise(50)), nil},
		{"close without a code", masked(0x88, nil), nil},
		{"close with a code that may not be sent", masked(0x88, []byte{0x03, 0xed}), nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, server := raw(t)
			if _, err := c.Write(tt.sent); err != nil {
				t.Fatal(err)
			}
			if err := c.(*net.TCPConn).CloseWrite(); err != nil {
				t.Fatal(err)
			}
			_, err := io.ReadAll(server)
			if !errors.Is(err, tt.err) {
				t.Errorf("read ended with %v, want %v", err, tt.err)
			}
			if _, err := server.Read(make([]byte, 1)); err == nil {
				t.Error("reading went on")
			}
			_ = server.Close()
			answer, _ := io.ReadAll(c)
			if errors.Is(tt.err, ws.ErrProtocol) && !bytes.HasPrefix(answer, []byte("\x88\x02\x03\xea")) {
				t.Errorf("the server said %q", answer)
			}
		})
	}
}

func TestRequests(t *testing.T) {
	srv, _ := serve(t)
	ok := http.Header{
		"Connection": {"keep-alive, Upgrade"}, "Upgrade": {"WebSocket"}, "Sec-Websocket-Version": {"13"},
		"Sec-Websocket-Key": {"Ji4mpIi+XLSaCMztJ1Q9Zw=="},
	}
	tests := []struct {
		name, method, header, value string
		status                      int
	}{
		{"good", "GET", "X-Large", strings.Repeat("x", 8<<10), http.StatusSwitchingProtocols},
		{"post", "POST", "", "", http.StatusUpgradeRequired},
		{"a browser", "GET", "Upgrade", "", http.StatusUpgradeRequired},
		{"an old version", "GET", "Sec-Websocket-Version", "8", http.StatusBadRequest},
		{"no key", "GET", "Sec-Websocket-Key", "", http.StatusBadRequest},
		{"a short key", "GET", "Sec-Websocket-Key", "aGVsbG8=", http.StatusBadRequest},
		{"headers without end", "GET", "X-Large", strings.Repeat("x", 2<<20), http.StatusRequestHeaderFieldsTooLarge},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			req := httptest.NewRequest(tt.method, srv.URL, nil)
			req.RequestURI = ""
			req.Header = ok.Clone()
			if tt.header != "" {
				req.Header.Set(tt.header, tt.value)
			}
			resp, err := srv.Client().Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if resp.StatusCode != tt.status {
				t.Errorf("answered %s", resp.Status)
			}
		})
	}
}

func TestDialRefused(t *testing.T) {
	answers := map[string]http.HandlerFunc{
		"a page":           func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>hello") },
		"another place":    func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/login", http.StatusFound) },
		"a tunnel down":    func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "error code: 1033", 530) },
		"a wrong accept":   func(w http.ResponseWriter, _ *http.Request) { answer(w, "Sec-Websocket-Accept", "x") },
		"a wrong protocol": func(w http.ResponseWriter, _ *http.Request) { answer(w, "Sec-Websocket-Protocol", "x") },
	}
	for name, h := range answers {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewTLSServer(h)
			defer srv.Close()
			_, _, err := ws.Dial(t.Context(), srv.URL, ws.DialOptions{Client: srv.Client(), Protocol: "berth"})
			var refused *ws.RefusedError
			if !errors.As(err, &refused) && !errors.Is(err, ws.ErrProtocol) {
				t.Errorf("dial says %v", err)
			}
		})
	}
}

func answer(w http.ResponseWriter, header, value string) {
	w.Header().Set("Connection", "Upgrade")
	w.Header().Set("Upgrade", "websocket")
	w.Header().Set(header, value)
	w.WriteHeader(http.StatusSwitchingProtocols)
}

func TestDialGivesUp(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and never answers
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		if c, err := ln.Accept(); err == nil {
			cancel(errors.New("enough"))
			defer c.Close()
			_, _ = io.Copy(io.Discard, c)
		}
	}()
	if _, _, err := ws.Dial(ctx, "http://"+ln.Addr().String(), ws.DialOptions{Client: http.DefaultClient}); err == nil || !strings.Contains(err.Error(), "enough") {
		t.Errorf("dial says %v", err)
	}
}
