package tunnel

import (
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// maxAddresses is how many of this machine's addresses guests are told at most.
const maxAddresses = 4

// addresses are those under which guests may find a port that listens on every address of the
// family ("tcp" for both, "tcp4"): first the ones that packets leave from, then those of other networks.
// Addresses that only containers and virtual machines on this machine can reach are left out.
func addresses(network string) []string {
	all := []string{outward("192.0.2.1:9")}
	if network == "tcp" {
		all = append(all, outward("[2001:db8::1]:9"))
	}
	links, err := net.Interfaces()
	if err != nil {
		links = nil
	}
	for _, l := range links {
		if l.Flags&net.FlagUp == 0 || l.Flags&net.FlagLoopback != 0 || inside(l.Name) {
			continue
		}
		addrs, err := l.Addrs()
		if err != nil {
			continue
		}
		for _, a := range addrs {
			if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Is4() && p.Addr().IsGlobalUnicast() {
				all = append(all, p.Addr().String())
			}
		}
	}
	var out []string
	for _, a := range all {
		if a != "" && !slices.Contains(out, a) && len(out) < maxAddresses {
			out = append(out, a)
		}
	}
	return out
}

// inside reports whether an interface leads to containers or virtual machines of this machine:
// a bridge, or one end of a pair.
func inside(name string) bool {
	if _, err := os.Stat(filepath.Join("/sys/class/net", name, "bridge")); err == nil {
		return true
	}
	return slices.ContainsFunc([]string{"docker", "br-", "veth", "virbr", "tap"}, func(p string) bool { return strings.HasPrefix(name, p) })
}

// outward is the source address of packets that leave this machine towards to, or "".
// Connecting a UDP socket sends nothing; callers name documentation's own addresses (RFC 5737, RFC 3849).
func outward(to string) string {
	c, err := net.Dial("udp", to)
	if err != nil {
		return ""
	}
	host, _, err := net.SplitHostPort(c.LocalAddr().String())
	_ = c.Close()
	addr, perr := netip.ParseAddr(host)
	if err != nil || perr != nil || !addr.IsGlobalUnicast() {
		return ""
	}
	return host
}
