package tunnel

import (
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/pires/go-proxyproto"
)

// headerTimeout is how long a load balancer may take to say whom it brings.
const headerTimeout = 5 * time.Second

// behindProxies takes the guest's address from the PROXY protocol header (version 1 or 2) of
// connections that come from trusted, where it has to be. From anybody else such a header is
// what it looks like: no SSH.
func behindProxies(ln net.Listener, trusted []netip.Prefix) net.Listener {
	return &proxyproto.Listener{
		Listener: ln, ReadHeaderTimeout: headerTimeout,
		ConnPolicy: func(o proxyproto.ConnPolicyOptions) (proxyproto.Policy, error) {
			from, err := netip.ParseAddrPort(o.Upstream.String())
			if err == nil && slices.ContainsFunc(trusted, func(p netip.Prefix) bool { return p.Contains(from.Addr().Unmap()) }) {
				return proxyproto.REQUIRE, nil
			}
			return proxyproto.SKIP, nil
		},
	}
}
