package ws_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/berth-gpu/berth/tunnel/internal/ws"
)

// serve runs a TLS server whose WebSockets are handed to the test.
func serve(t *testing.T, protocols ...string) (*httptest.Server, chan *ws.Conn) {
	t.Helper()
	conns := make(chan *ws.Conn, 8)
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, _, err := ws.Accept(w, r, protocols...)
		if err != nil {
			return
		}
		conns <- c
		<-c.Closed()
	}))
	t.Cleanup(srv.Close)
	return srv, conns
}

func dial(t *testing.T, srv *httptest.Server, protocol string) (*ws.Conn, string) {
	t.Helper()
	c, agreed, err := ws.Dial(context.Background(), srv.URL, ws.DialOptions{Client: srv.Client(), Protocol: protocol})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c, agreed
}

// raw opens the transport and does the handshake by hand, so that the test may then send what it likes.
func raw(t *testing.T) (net.Conn, *ws.Conn) {
	t.Helper()
	conns := make(chan *ws.Conn, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, _, err := ws.Accept(w, r); err == nil {
			conns <- c
			<-c.Closed()
		}
	}))
	t.Cleanup(srv.Close)
	c, err := net.Dial("tcp", srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_, err = io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"+
		"Sec-WebSocket-Key: Ji4mpIi+XLSaCMztJ1Q9Zw==\r\n\r\n")
	if err != nil {
		t.Fatal(err)
	}
	var head []byte
	for !bytes.HasSuffix(head, []byte("\r\n\r\n")) {
		var b [1]byte
		if _, err := c.Read(b[:]); err != nil {
			t.Fatal(err)
		}
		head = append(head, b[0])
	}
	if !bytes.Contains(head, []byte("Sec-Websocket-Accept: awPE7+iefkbiBq6jqi33QZQP4pc=")) {
		t.Fatalf("the server answered %s", head)
	}
	server := <-conns
	t.Cleanup(func() { server.Close() })
	return c, server
}
