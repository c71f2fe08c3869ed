package cloudflare

import (
	"bufio"
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
)

// answer is the http.ResponseWriter of a request from the edge, on either transport. A handler
// that has written a 101 may hijack it.
type answer struct {
	stream  stream
	watched *streams
	header  http.Header
	wrote   bool
	failed  error
	conn    *streamConn
}

// serve has h answer r, and returns when the answer is complete.
func (s *streams) serve(h http.Handler, on stream, r *http.Request) {
	s.begin()
	defer s.end()
	a := &answer{stream: on, watched: s, header: make(http.Header)}
	defer a.finish(r.Context())
	h.ServeHTTP(a, r)
}

// finish waits for whoever hijacked the answer.
func (a *answer) finish(ctx context.Context) {
	if a.conn == nil {
		a.WriteHeader(http.StatusOK)
		return
	}
	select {
	case <-a.conn.closed:
	case <-ctx.Done(): // the guest or the edge is gone: reads and writes fail by now
		_ = a.conn.Close()
	}
}

// Header implements http.ResponseWriter.
func (a *answer) Header() http.Header { return a.header }

// WriteHeader implements http.ResponseWriter. What comes before the answer proper is dropped.
func (a *answer) WriteHeader(status int) {
	if a.wrote || (status < http.StatusOK && status != http.StatusSwitchingProtocols) {
		return
	}
	a.wrote = true
	a.failed = a.stream.head(status, a.header)
}

// Write implements http.ResponseWriter.
func (a *answer) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	if a.failed != nil {
		return 0, a.failed
	}
	return a.stream.Write(p)
}

// Flush implements http.Flusher. Every write leaves at once anyway.
func (a *answer) Flush() { a.WriteHeader(http.StatusOK) }

// Hijack implements http.Hijacker, once and after a 101.
func (a *answer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if !a.wrote || a.failed != nil || a.conn != nil {
		return nil, nil, errors.New("take over a request: it needs exactly one answer, 101")
	}
	a.conn = newStreamConn(a.stream, a.watched)
	return a.conn, bufio.NewReadWriter(bufio.NewReader(a.conn), bufio.NewWriter(a.conn)), nil
}

// guestAddr is the guest's address, from the header that the edge sets itself. Only requests that
// came through the tunnel get here.
func guestAddr(r *http.Request) net.Addr {
	ip, err := netip.ParseAddr(r.Header.Get(headerAddress))
	if err != nil {
		ip = netip.IPv4Unspecified()
	}
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(ip.Unmap().WithZone(""), 0))
}
