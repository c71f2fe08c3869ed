package cloudflare

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// h2Conn is a connection to the edge over HTTP/2. We dialled it; on it the edge is the client.
type h2Conn struct {
	*edgeConn
	conn  *ownConn
	taken atomic.Bool // the control stream is open
	ended chan error  // how it ended
}

// serveH2 runs one connection over HTTP/2 until it ends.
func (c *edgeConn) serveH2(ctx context.Context) error {
	conn, err := c.dialH2(ctx)
	if err != nil {
		return &dialError{classify(err)}
	}
	h := &h2Conn{edgeConn: c, conn: &ownConn{Conn: conn, done: make(chan struct{})}, ended: make(chan error, 1)}
	defer context.AfterFunc(ctx, h.conn.end)()
	defer time.AfterFunc(controlTimeout, func() {
		if h.taken.CompareAndSwap(false, true) {
			h.ended <- errors.New("the edge opened no control stream")
		}
	}).Stop()
	result := make(chan error, 1)
	go func() {
		err := h.wait()
		if err == nil {
			c.streams.wait(ctx) // we said goodbye: what runs may end
		}
		h.conn.end()
		result <- err
	}()
	_ = h.server(ctx).Serve(&oneListener{conn: h.conn}) // the reason is in result
	h.conn.end()
	return <-result
}

// wait returns how the control stream ended, or that there never was one.
func (h *h2Conn) wait() error {
	select {
	case err := <-h.ended:
		return err
	case <-h.conn.done:
		if h.taken.CompareAndSwap(false, true) {
			return errConnEnded
		}
		return <-h.ended
	}
}

var errConnEnded = errors.New("the connection to the edge was cut")

func (c *edgeConn) dialH2(ctx context.Context) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	raw, err := c.t.dial(ctx, "tcp", c.addr)
	if err != nil {
		return nil, err
	}
	// No protocol is offered: the edge's client expects none.
	conn := tls.Client(raw, &tls.Config{ServerName: nameH2, RootCAs: c.t.roots, MinVersion: tls.VersionTLS12})
	if err := conn.HandshakeContext(ctx); err != nil {
		_ = raw.Close()
		return nil, err
	}
	return conn, nil
}

// server is set up so that bytes which a request's handler leaves unread keep as little as
// possible of the window that all requests share. net/http allows just under 4 MiB in all.
func (h *h2Conn) server(ctx context.Context) *http.Server {
	var only http.Protocols
	only.SetUnencryptedHTTP2(true)
	return &http.Server{ //nolint:gosec // no header timeout: the edge's connection idles for days
		Handler: h, Protocols: &only, MaxHeaderBytes: 64 << 10,
		BaseContext: func(net.Listener) context.Context { return ctx },
		ErrorLog:    slog.NewLogLogger(h.t.log.Handler(), slog.LevelDebug),
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: 1 << 20, MaxReadFrameSize: 256 << 10,
			MaxReceiveBufferPerConnection: 4<<20 - 1, MaxReceiveBufferPerStream: 512 << 10,
			SendPingTimeout: pingAfter, PingTimeout: pingTimeout,
		},
	}
}

// ServeHTTP tells by its mark what a request is for. Path and host of a marked one say nothing.
func (h *h2Conn) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	mark := r.Header.Get(headerMark)
	r.Header.Del(headerMark)
	switch {
	case mark == markConfig:
		h.configure(w, r)
	case mark == markWebSocket:
		restoreUpgrade(r)
		h.request(w, r)
	case r.Header.Get(headerTCPSource) != "": // routing into a private network
		ownFailure(w)
	case mark == markControl:
		h.controlStream(w, r)
	case mark == "":
		h.request(w, r)
	default:
		ownFailure(w)
	}
}

func (h *h2Conn) request(w http.ResponseWriter, r *http.Request) {
	s := newH2Stream(w, r)
	defer s.finish()
	h.streams.serve(h.t.handler, s, r)
}

// restoreUpgrade puts back what the edge took from a WebSocket request, without which no
// WebSocket library takes it for one.
func restoreUpgrade(r *http.Request) {
	r.Header.Set("Connection", "Upgrade")
	r.Header.Set("Upgrade", "websocket")
	r.Header.Set("Sec-Websocket-Version", "13")
	r.Proto, r.ProtoMajor, r.ProtoMinor = "HTTP/1.1", 1, 1
}

// controlStream serves the first control stream. Another one must not disturb it.
func (h *h2Conn) controlStream(w http.ResponseWriter, r *http.Request) {
	if !h.taken.CompareAndSwap(false, true) {
		ownFailure(w)
		return
	}
	s := newH2Stream(w, r)
	defer s.finish()
	h.ended <- h.control(r.Context(), controlRW{s, r.Body}, h.conn.LocalAddr())
}

// controlRW is the control stream: no headers but the status come before the first message.
type controlRW struct {
	*h2Stream
	body io.Closer
}

// Close ends the reading.
func (c controlRW) Close() error { return c.body.Close() }

// configure takes a configuration from the dashboard. There is one origin here, so its content
// is of no use; its version is acknowledged.
func (h *h2Conn) configure(w http.ResponseWriter, r *http.Request) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(controlTimeout))
	var push struct {
		Version int32           `json:"version"`
		Config  json.RawMessage `json:"config"`
	}
	if json.NewDecoder(io.LimitReader(r.Body, 1<<20)).Decode(&push) != nil {
		ownFailure(w)
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"lastAppliedVersion": h.t.apply(push.Version), "err": nil})
}

// ownConn hides the type of a TLS connection, whose protocol net/http would ask for, and tells
// when it is closed.
type ownConn struct {
	net.Conn
	once sync.Once
	done chan struct{}
}

// Close implements net.Conn.
func (c *ownConn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() { close(c.done) })
	return err
}

func (c *ownConn) end() { _ = c.Close() }

// oneListener yields one connection and then waits for its end.
type oneListener struct {
	conn  *ownConn
	given atomic.Bool
}

// Accept implements net.Listener.
func (l *oneListener) Accept() (net.Conn, error) {
	if l.given.CompareAndSwap(false, true) {
		return l.conn, nil
	}
	<-l.conn.done
	return nil, net.ErrClosed
}

// Close implements net.Listener.
func (l *oneListener) Close() error { return nil }

// Addr implements net.Listener.
func (l *oneListener) Addr() net.Addr { return l.conn.LocalAddr() }
