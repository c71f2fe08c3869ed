package tunnel_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/berth-gpu/berth/tunnel"
	"github.com/berth-gpu/berth/tunnel/internal/ws"
)

func TestEndpoint(t *testing.T) {
	e := tunnel.NewEndpoint(func(r *http.Request) net.Addr {
		if r.Header.Get("Cf-Connecting-Ip") == "" {
			return nil
		}
		return &net.TCPAddr{IP: net.ParseIP(r.Header.Get("Cf-Connecting-Ip"))}
	})
	srv := httptest.NewTLSServer(e)
	defer srv.Close()
	tests := []struct{ name, header, want string }{
		{"the edge says where the guest is", "203.0.113.9", "203.0.113.9:0"},
		{"nobody says it", "", "127.0.0.1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			guest, _, err := ws.Dial(t.Context(), srv.URL, ws.DialOptions{Client: srv.Client(), Header: http.Header{"Cf-Connecting-Ip": {tt.header}}})
			if err != nil {
				t.Fatal(err)
			}
			defer guest.Close()
			c, err := e.Accept()
			if err != nil {
				t.Fatal(err)
			}
			go func() { _, _ = io.Copy(c, c); c.Close() }()
			if _, err := io.WriteString(guest, "hello"); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(guest, make([]byte, 5)); err != nil {
				t.Fatal(err)
			}
			if from := c.RemoteAddr().String(); from != tt.want && from[:len(tt.want)] != tt.want {
				t.Errorf("the guest is at %s", from)
			}
		})
	}
	_ = e.Close()
	_, _, err := ws.Dial(context.Background(), srv.URL, ws.DialOptions{Client: srv.Client()})
	var refused *ws.RefusedError
	if !errors.As(err, &refused) || refused.Status != http.StatusServiceUnavailable {
		t.Errorf("after the end: %v", err)
	}
	if _, err := e.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("accept after the end: %v", err)
	}
}
