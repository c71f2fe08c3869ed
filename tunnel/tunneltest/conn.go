package tunneltest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
)

// Conn is one connection of a connector, as the edge sees it.
type Conn struct {
	Addr         string // the edge's address
	QUIC         bool
	Registration Registration // zero until registered

	edge *Edge
	carrier
}

// carrier is what HTTP/2 and QUIC do differently.
type carrier interface {
	// send carries a request that is ready for the connector and returns the handler's answer.
	send(r *http.Request, kind requestKind) (*http.Response, error)
	// push delivers a configuration and returns the version the connector says is in force.
	push(ctx context.Context, version int32, config []byte) (int32, error)
	drop()
}

// requestKind is the edge's mark on a request.
type requestKind int

const (
	kindHTTP requestKind = iota
	kindWebSocket
	kindTCP
)

// ErrNoConnection means that no connector serves the tunnel.
var ErrNoConnection = errors.New("fake edge: no connection")

// Drop cuts the connection.
func (c *Conn) Drop() { c.drop() }

// raw is the TCP connection's fault switch; only HTTP/2 has one.
func (c *Conn) raw(change func(*faulty)) {
	if h, ok := c.carrier.(*h2Carrier); ok {
		h.raw.set(func() { change(h.raw) })
	}
}

// Stall stops the edge from reading and writing, or lets it go on. HTTP/2 only.
func (c *Conn) Stall(stop bool) { c.raw(func(f *faulty) { f.stalled = stop }) }

// HalfOpen makes the edge vanish without a word: what the connector sends is lost and nothing
// comes back. HTTP/2 only; for QUIC see Edge.BlockUDP.
func (c *Conn) HalfOpen() { c.raw(func(f *faulty) { f.halfOpen = true }) }

// Slow limits the connection each way; 0 lifts the limit. HTTP/2 only.
func (c *Conn) Slow(bytesPerSecond int) { c.raw(func(f *faulty) { f.perSec = bytesPerSecond }) }

// Push delivers a remote configuration and returns the version that the connector says is in
// force.
func (c *Conn) Push(ctx context.Context, version int32, config string) (int32, error) {
	return c.push(ctx, version, []byte(config))
}

// RouteTCP sends a request for private-network routing, which no Berth connector serves.
func (c *Conn) RouteTCP(r *http.Request) (*http.Response, error) { return c.send(prepare(r), kindTCP) }

// Do sends one guest's request over this connection, as the edge passes it on. RemoteAddr of the
// request is the guest's address. A 101 answer's body is read for the handler's bytes; the
// request's body carries the guest's. Cancelling the request's context resets the stream.
func (c *Conn) Do(r *http.Request) (*http.Response, error) {
	kind := kindHTTP
	if isWebSocket(r) {
		kind = kindWebSocket
	}
	return c.send(prepare(r), kind)
}

// SecondControlStream opens a control stream beside the first and returns the status it is
// answered with. HTTP/2 only.
func (c *Conn) SecondControlStream(ctx context.Context) (int, error) {
	h, ok := c.carrier.(*h2Carrier)
	if !ok {
		return 0, errors.New("fake edge: only HTTP/2 has marked control streams")
	}
	return h.secondControl(ctx)
}

// Do sends one guest's request over the next connection in turn.
func (e *Edge) Do(r *http.Request) (*http.Response, error) {
	e.mu.Lock()
	if len(e.conns) == 0 {
		e.mu.Unlock()
		return nil, ErrNoConnection
	}
	c := e.conns[0]
	e.conns = append(e.conns[1:len(e.conns):len(e.conns)], c)
	e.mu.Unlock()
	return c.Do(r)
}

// admit notes an open connection; false when the edge is closed.
func (e *Edge) admit(c *Conn) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return false
	}
	e.all[c] = true
	e.changed()
	return true
}

// forget notes that a connection is gone.
func (e *Edge) forget(c *Conn) {
	e.retire(c)
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.all, c)
	e.changed()
}

// retire takes a connection out of turn: no new requests.
func (e *Edge) retire(c *Conn) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for i, x := range e.conns {
		if x == c {
			e.conns = append(e.conns[:i:i], e.conns[i+1:]...)
			e.changed()
			return
		}
	}
}

// OpenConns counts connections whether registered or not.
func (e *Edge) OpenConns() int { return len(e.open()) }

// pushBody is a remote configuration on HTTP/2.
func pushBody(version int32, config []byte) ([]byte, error) {
	return json.Marshal(map[string]any{"version": version, "config": json.RawMessage(config)})
}

// pushAnswer reads the connector's answer to one.
func pushAnswer(body []byte) (int32, error) {
	var a struct {
		Version *int32  `json:"lastAppliedVersion"`
		Err     *string `json:"err"`
	}
	if err := json.Unmarshal(body, &a); err != nil {
		return 0, fmt.Errorf("fake edge: configuration answer: %w", err)
	}
	if a.Version == nil || a.Err != nil {
		return 0, fmt.Errorf("fake edge: configuration answer %q", body)
	}
	return *a.Version, nil
}
