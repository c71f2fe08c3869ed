package cloudflare

import (
	"context"
	"crypto/tls"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"time"
)

// edges are the addresses of the edge, and which of them serve.
type edges struct {
	find func(ctx context.Context) ([]edgeAddr, error)

	mu     sync.Mutex
	list   []edgeAddr
	found  time.Time
	inUse  map[uint8]string     // by connection
	failed map[string]time.Time // when an address could not be connected to
	spare  time.Time            // until when the preferred family is left alone
}

// edgeAddr is one address.
type edgeAddr struct {
	addr   string // host:port
	region int
	second bool // of the family that is not preferred
}

// fixedEdges are for those who name the edge themselves.
func fixedEdges(addrs []string) *edges {
	list := make([]edgeAddr, len(addrs))
	for i, a := range addrs {
		list[i] = edgeAddr{addr: a, region: i % 2}
	}
	return newEdges(func(context.Context) ([]edgeAddr, error) { return list, nil })
}

func newEdges(find func(ctx context.Context) ([]edgeAddr, error)) *edges {
	return &edges{find: find, inUse: make(map[uint8]string), failed: make(map[string]time.Time)}
}

// load finds the edge unless it was found, and says how many addresses there are.
func (e *edges) load(ctx context.Context) (int, error) {
	e.mu.Lock()
	n := len(e.list)
	e.mu.Unlock()
	if n > 0 {
		return n, nil
	}
	list, err := e.find(ctx)
	if err != nil {
		return 0, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.list, e.found = list, time.Now()
	return len(list), nil
}

// refresh finds the edge again, now and then: the addresses may be others on another network.
// If that fails the old ones stay.
func (e *edges) refresh(ctx context.Context) {
	e.mu.Lock()
	recent := time.Since(e.found) < time.Minute
	e.mu.Unlock()
	if recent {
		return
	}
	list, err := e.find(ctx)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.found = time.Now()
	if err == nil {
		e.list = list
	}
}

// pick gives a connection its address: the one it had, unless it wants another. It prefers what
// no other connection uses, what has not failed, the preferred family, and the regions in turn.
func (e *edges) pick(index uint8, other bool) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	had := e.inUse[index]
	if had != "" && !other {
		return had
	}
	delete(e.inUse, index)
	best, score := "", -1
	for _, i := range rand.Perm(len(e.list)) { //nolint:gosec // nobody gains by guessing it
		if s := e.score(e.list[i], index, had); s > score {
			best, score = e.list[i].addr, s
		}
	}
	e.inUse[index] = best
	return best
}

// score ranks an address for a connection. The caller holds mu.
func (e *edges) score(a edgeAddr, index uint8, had string) int {
	score := 0
	add := func(n int, good bool) {
		if good {
			score += n
		}
	}
	used := false
	for _, addr := range e.inUse {
		used = used || addr == a.addr
	}
	now := time.Now()
	add(16, !used)
	add(8, a.addr != had)
	add(4, now.Sub(e.failed[a.addr]) > familySpare)
	add(2, a.second == now.Before(e.spare))
	add(1, a.region == int(index)%2)
	return score
}

// release gives a connection's address back.
func (e *edges) release(index uint8) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.inUse, index)
}

// worked notes that an address serves.
func (e *edges) worked(addr string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.failed, addr)
}

// failedDial notes an address that could not be connected to. Where IPv6 is preferred and fails,
// the other family has its turn.
func (e *edges) failedDial(addr string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	e.failed[addr] = now
	for _, a := range e.list {
		if a.addr != addr || a.second {
			continue
		}
		if ap, err := netip.ParseAddrPort(addr); err == nil && ap.Addr().Is6() && !ap.Addr().Is4In6() {
			e.spare = now.Add(familySpare)
		}
	}
}

// resolver is the subset of net.Resolver that discovery uses.
type resolver interface {
	LookupSRV(ctx context.Context, service, proto, name string) (string, []*net.SRV, error)
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// overTLS asks a public resolver by DNS over TLS: some networks' own know no SRV records.
func overTLS() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		d := tls.Dialer{Config: &tls.Config{ServerName: dotName, MinVersion: tls.VersionTLS12}}
		return d.DialContext(ctx, "tcp", dotAddress)
	}}
}

// discover asks the resolvers in turn for the edge of a region, which may be empty.
func discover(region string, resolvers ...resolver) func(ctx context.Context) ([]edgeAddr, error) {
	return func(ctx context.Context) ([]edgeAddr, error) {
		var last error
		for _, r := range resolvers {
			list, err := lookup(ctx, r, region)
			if err == nil {
				return list, nil
			}
			last = err
		}
		return nil, fmt.Errorf("%w: %w", ErrDiscovery, last)
	}
}

func lookup(ctx context.Context, r resolver, region string) ([]edgeAddr, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	service := srvService
	if region != "" {
		service = region + "-" + service
	}
	_, targets, err := r.LookupSRV(ctx, service, srvProto, srvDomain)
	if err != nil {
		return nil, err
	}
	var list []edgeAddr
	for region, t := range targets {
		ips, err := r.LookupNetIP(ctx, "ip", t.Target)
		if err != nil {
			return nil, err
		}
		for _, ip := range ips {
			second := ip.Unmap().Is4() != ips[0].Unmap().Is4()
			list = append(list, edgeAddr{addr: net.JoinHostPort(ip.Unmap().String(), strconv.Itoa(int(t.Port))), region: region, second: second})
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("look up %s.%s: no address", service, srvDomain)
	}
	return list, nil
}
