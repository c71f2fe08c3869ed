package tunnel

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"
)

// Direct is the plain door: a TCP port on this machine.
type Direct struct {
	Addr      string // where to listen, host:port; port 0 takes a free one
	Advertise string // the name or address that guests are told; if empty, found from Addr and the machine's networks
	// Proxies are load balancers that say in a PROXY protocol header, version 1 or 2, where a
	// guest comes from. They have to; nobody else is believed.
	Proxies []netip.Prefix

	mu    sync.Mutex
	ln    net.Listener
	hosts []string
	port  int
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
	at, ok := ln.Addr().(*net.TCPAddr)
	if !ok {
		_ = ln.Close()
		return nil, fmt.Errorf("open direct door: %s is no TCP address", ln.Addr())
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ln, d.port, d.hosts = ln, at.Port, d.advertised(at.IP)
	if len(d.Proxies) > 0 {
		return behindProxies(ln, d.Proxies), nil
	}
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

// Detail is where the door listens.
func (d *Direct) Detail() string {
	if a := d.Address(); a != nil {
		return a.String()
	}
	return d.Addr
}

// Lines are what a guest on the same network, or with a way to this port, types: one for each
// address under which they may find this machine.
func (d *Direct) Lines(token string) []Lines {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ln == nil {
		return nil
	}
	all := make([]Lines, 0, len(d.hosts))
	for _, host := range d.hosts {
		all = append(all, plainLines(token, host, d.port))
	}
	return all
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
// where that is every address, those under which others find this machine.
func (d *Direct) advertised(ip net.IP) []string {
	switch {
	case d.Advertise != "":
		return []string{d.Advertise}
	case !ip.IsUnspecified():
		return []string{ip.String()}
	}
	network := "tcp"
	if host, _, err := net.SplitHostPort(d.Addr); err == nil && host == "0.0.0.0" {
		network = "tcp4"
	}
	if all := addresses(network); len(all) > 0 {
		return all
	}
	return []string{"127.0.0.1"}
}
