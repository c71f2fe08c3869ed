package tunnel

import (
	"net"
	"net/http"
	"sync"

	"github.com/berth-gpu/berth/tunnel/internal/ws"
)

// Endpoint is what a public hostname serves to SSH clients: an http.Handler for requests that
// ask for a WebSocket, whose bytes come out of Accept as connections. `cloudflared access
// ssh` and `berth connect` both speak to it. Any number of servers and tunnel connections may
// share one. Make it with NewEndpoint.
type Endpoint struct {
	// Address is where the guest of a request is, as the door knows it; if nil, where its
	// connection comes from.
	Address func(*http.Request) net.Addr

	conns chan net.Conn
	shut  chan struct{}
	once  sync.Once
}

// NewEndpoint returns an endpoint whose guests are where address says.
func NewEndpoint(address func(*http.Request) net.Addr) *Endpoint {
	return &Endpoint{Address: address, conns: make(chan net.Conn), shut: make(chan struct{})}
}

// IsWebSocket reports whether r is for ServeHTTP; any other request is a browser's or a mistake.
func IsWebSocket(r *http.Request) bool { return ws.Requested(r) }

// ServeHTTP carries one guest's connection; it returns when that is closed.
func (e *Endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	select {
	case <-e.shut:
		http.Error(w, "the gateway is stopping", http.StatusServiceUnavailable)
		return
	default:
	}
	from := e.address(r)
	c, _, err := ws.Accept(w, r)
	if err != nil {
		return
	}
	guest := &guestConn{Conn: c, from: from}
	select {
	case e.conns <- guest:
		<-c.Closed()
	case <-e.shut:
		_ = c.Close()
	}
}

func (e *Endpoint) address(r *http.Request) net.Addr {
	if e.Address != nil {
		if a := e.Address(r); a != nil {
			return a
		}
	}
	a, err := net.ResolveTCPAddr("tcp", r.RemoteAddr) // numbers, as net/http writes them
	if err != nil {
		return textAddr(r.RemoteAddr)
	}
	return a
}

// Accept returns the next guest's connection.
func (e *Endpoint) Accept() (net.Conn, error) {
	select {
	case c := <-e.conns:
		return c, nil
	case <-e.shut:
		return nil, net.ErrClosed
	}
}

// Close ends Accept and turns away new requests; connections stay.
func (e *Endpoint) Close() error {
	e.once.Do(func() { close(e.shut) })
	return nil
}

// Addr says what this is.
func (e *Endpoint) Addr() net.Addr { return textAddr("websocket") }

// guestConn is a connection with the guest's real address.
type guestConn struct {
	net.Conn
	from net.Addr
}

// RemoteAddr is where the guest is.
func (c *guestConn) RemoteAddr() net.Addr { return c.from }

// textAddr is an address that is only shown.
type textAddr string

// Network is door.
func (textAddr) Network() string { return "door" }

// String is the text.
func (a textAddr) String() string { return string(a) }
