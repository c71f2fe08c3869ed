package tunnel

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"
)

// Direct is the plain door: a TCP port on this machine.
type Direct struct {
	Addr      string // where to listen, host:port; port 0 takes a free one
	Advertise string // the name or address that guests are told; if empty, found from Addr and the machine's networks

	mu   sync.Mutex
	ln   net.Listener
	host string
	port int
}

// Name is direct.
func (d *Direct) Name() string { return "direct" }

// Listen takes the port. Idle guests behind a router that forgets are found out by TCP's own
// keepalives as well as by SSH's.
func (d *Direct) Listen(ctx context.Context) (net.Listener, error) {
	lc := net.ListenConfig{KeepAlive: 30 * time.Second}
	ln, err := lc.Listen(ctx, "tcp", d.Addr)
	if err != nil {
		return nil, fmt.Errorf("open direct door: %w", err)
	}
	host, port, err := net.SplitHostPort(ln.Addr().String())
	if err != nil {
		_ = ln.Close()
		return nil, fmt.Errorf("open direct door: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ln, d.host = ln, d.advertised(host)
	d.port, _ = strconv.Atoi(port) // a listener's own port
	return ln, nil
}

// Address is where the door listens; nil while it does not.
func (d *Direct) Address() net.Addr {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ln == nil {
		return nil
	}
	return d.ln.Addr()
}

// Lines are what a guest on the same network, or with a way to this port, types.
func (d *Direct) Lines(token string) (Lines, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ln == nil {
		return Lines{}, false
	}
	return plainLines(token, d.host, d.port), true
}

// Close gives the port back.
func (d *Direct) Close() error {
	d.mu.Lock()
	ln := d.ln
	d.ln = nil
	d.mu.Unlock()
	if ln == nil {
		return nil
	}
	return ln.Close()
}

// advertised is what guests are told: what the host named, the address that was asked for, or,
// where that is every address, the one this machine reaches others from.
func (d *Direct) advertised(host string) string {
	ip := net.ParseIP(host)
	switch {
	case d.Advertise != "":
		return d.Advertise
	case ip == nil || !ip.IsUnspecified():
		return host
	}
	if lan := outward(); lan != "" {
		return lan
	}
	return "127.0.0.1"
}

// outward is the source address of packets that leave this machine. Connecting a UDP socket
// sends nothing; 192.0.2.1 is documentation's own address (RFC 5737).
func outward() string {
	for _, to := range []string{"192.0.2.1:9", "[2001:db8::1]:9"} {
		c, err := net.Dial("udp", to)
		if err != nil {
			continue
		}
		host, _, err := net.SplitHostPort(c.LocalAddr().String())
		_ = c.Close()
		if err == nil {
			return host
		}
	}
	return ""
}
