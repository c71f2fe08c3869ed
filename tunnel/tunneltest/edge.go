package tunneltest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"

	"github.com/berth-gpu/berth/tunnel/internal/wire"
)

// Registration is what a connector said about itself.
type Registration = wire.Registration

// Answer is the edge's decision about a registration. With a Cause it is a refusal.
type Answer = wire.Outcome

// Options shapes an edge. The zero value is an edge that behaves.
type Options struct {
	// Addresses is how many edge addresses there are; 0 means 4. Each is a TCP port and the
	// UDP port of the same number.
	Addresses int
	// NoUDP leaves the UDP ports silent, as on a network that blocks them.
	NoUDP bool
	// Decide, if set, answers registrations instead of the edge's own check. Returning false
	// leaves the registration unanswered.
	Decide func(Registration, *Conn) (Answer, bool)
	// NoControl never opens the control stream of an HTTP/2 connection.
	NoControl bool
	// Garble, if set, rewrites every RPC frame the edge sends: other encodings of the same
	// message, another version of the protocol, or nonsense.
	Garble func(frame []byte) []byte
	// Managed says that tunnels are managed from the dashboard.
	Managed bool
}

// Edge is a running fake. Its methods may be called from any goroutine.
type Edge struct {
	opts  Options
	ca    authority
	ports []*port
	first Tunnel
	quick *quickService

	mu         sync.Mutex
	tunnels    map[string]Tunnel // by raw id
	conns      []*Conn           // registered, in turn order
	all        map[*Conn]bool    // every open connection
	regs       []Registration
	unregs     int
	configs    [][]byte
	violations []string
	unready    int // public answers that are still 530
	wake       chan struct{}
	closed     bool
}

// New starts an edge. Close it.
func New(opts Options) (*Edge, error) {
	if opts.Addresses == 0 {
		opts.Addresses = 4
	}
	ca, err := newAuthority()
	if err != nil {
		return nil, fmt.Errorf("fake edge: %w", err)
	}
	e := &Edge{opts: opts, ca: ca, tunnels: map[string]Tunnel{}, all: map[*Conn]bool{}, wake: make(chan struct{})}
	e.quick = &quickService{edge: e}
	e.first = e.AddTunnel("gpu.example.test")
	for range opts.Addresses {
		p, err := e.listen("127.0.0.1:0")
		if err != nil {
			e.Close()
			return nil, fmt.Errorf("fake edge: %w", err)
		}
		e.ports = append(e.ports, p)
	}
	return e, nil
}

// Start starts an edge for a test. It is closed when the test ends, and every violation of the
// protocol fails the test.
func Start(tb testing.TB, opts Options) *Edge {
	tb.Helper()
	e, err := New(opts)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		e.Close()
		for _, v := range e.Violations() {
			tb.Errorf("the edge would not accept: %s", v)
		}
	})
	return e
}

// Addrs lists the edge's addresses as host:port.
func (e *Edge) Addrs() []string {
	var out []string
	for _, p := range e.ports {
		out = append(out, p.addr)
	}
	return out
}

// Roots is the pool that trusts this edge and its public side, and nothing else.
func (e *Edge) Roots() *x509.CertPool { return e.ca.pool }

// RootsPEM is the same as a file's content.
func (e *Edge) RootsPEM() []byte { return e.ca.pem }

// Close ends every connection and stops listening.
func (e *Edge) Close() {
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	for _, p := range e.ports {
		p.close()
	}
	e.Drop()
}

// Drop cuts every connection at once.
func (e *Edge) Drop() {
	for _, c := range e.open() {
		c.Drop()
	}
}

// Restart cuts every connection and stops listening for as long as between runs, then listens on
// the same addresses again: an edge that is being updated.
func (e *Edge) Restart(between func()) error {
	for _, p := range e.ports {
		p.close()
	}
	e.Drop()
	if between != nil {
		between()
	}
	for i, p := range e.ports {
		again, err := e.listen(p.addr)
		if err != nil {
			return fmt.Errorf("restart fake edge: %w", err)
		}
		e.ports[i] = again
	}
	return nil
}

// BlockUDP makes every UDP packet vanish, both ways, or lets them through again.
func (e *Edge) BlockUDP(block bool) {
	for _, p := range e.ports {
		if p.packets != nil {
			p.packets.block.Store(block)
		}
	}
}

func (e *Edge) open() []*Conn {
	e.mu.Lock()
	defer e.mu.Unlock()
	var out []*Conn
	for c := range e.all {
		out = append(out, c)
	}
	return out
}

// Conns lists the registered connections.
func (e *Edge) Conns() []*Conn {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.conns)
}

// Conn returns the registered connection of an index, or nil.
func (e *Edge) Conn(index uint8) *Conn {
	for _, c := range e.Conns() {
		if c.Registration.Index == index {
			return c
		}
	}
	return nil
}

// Registrations lists every registration that was asked for, refused ones too.
func (e *Edge) Registrations() []Registration {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.regs)
}

// Unregistrations counts the connections that said goodbye.
func (e *Edge) Unregistrations() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.unregs
}

// LocalConfigs lists the configurations that connectors reported.
func (e *Edge) LocalConfigs() [][]byte {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.configs)
}

// Violations lists what connectors did that the real edge would not accept.
func (e *Edge) Violations() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.violations)
}

// ForgiveViolations forgets them: for tests of the fake itself.
func (e *Edge) ForgiveViolations() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.violations = nil
}

func (e *Edge) violate(format string, args ...any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.violations = append(e.violations, fmt.Sprintf(format, args...))
}

// Wait blocks until ok holds, looking again whenever the edge's state changes.
func (e *Edge) Wait(ctx context.Context, ok func() bool) error {
	for {
		e.mu.Lock()
		wake := e.wake
		e.mu.Unlock()
		if ok() {
			return nil
		}
		select {
		case <-wake:
		case <-ctx.Done():
			return fmt.Errorf("wait for fake edge: %w", ctx.Err())
		}
	}
}

// WaitConns blocks until exactly n connections are registered.
func (e *Edge) WaitConns(ctx context.Context, n int) error {
	return e.Wait(ctx, func() bool { return len(e.Conns()) == n })
}

// changed wakes those who wait. The caller holds mu.
func (e *Edge) changed() {
	close(e.wake)
	e.wake = make(chan struct{})
}

// port is one address of the edge.
type port struct {
	edge    *Edge
	addr    string
	tcp     net.Listener
	packets *lossyPackets // nil without UDP
	quic    func()        // stops QUIC
}

// listen opens one address. The UDP port has the TCP port's number, as at the real edge; when
// that number is taken another one is tried, unless the caller asked for it.
func (e *Edge) listen(addr string) (*port, error) {
	var errs []error
	for range 10 {
		l, err := net.Listen("tcp", addr)
		if err != nil {
			return nil, err
		}
		p := &port{edge: e, addr: l.Addr().String(), tcp: l}
		if !e.opts.NoUDP {
			if err := p.listenQUIC(); err != nil {
				_ = l.Close()
				errs = append(errs, err)
				continue
			}
		}
		go p.accept()
		return p, nil
	}
	return nil, errors.Join(errs...)
}

func (p *port) close() {
	_ = p.tcp.Close()
	if p.quic != nil {
		p.quic()
	}
}

func (p *port) accept() {
	for {
		raw, err := p.tcp.Accept()
		if err != nil {
			return
		}
		go p.serveH2(newFaulty(raw))
	}
}

// tlsConfig is the edge's, for one transport. Hellos that the edge would not expect are
// violations.
func (e *Edge) tlsConfig(name, alpn string) *tls.Config {
	conf := &tls.Config{Certificates: []tls.Certificate{e.ca.leaf}, MinVersion: tls.VersionTLS12}
	if alpn != "" {
		conf.NextProtos = []string{alpn}
	}
	conf.GetConfigForClient = func(h *tls.ClientHelloInfo) (*tls.Config, error) {
		if h.ServerName != name {
			e.violate("server name %q, want %q", h.ServerName, name)
		}
		if alpn == "" && len(h.SupportedProtos) > 0 {
			e.violate("application protocols %q were offered on HTTP/2", h.SupportedProtos)
		}
		return nil, nil //nolint:nilnil // keep the configuration: the contract of this callback
	}
	return conf
}
