package container

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/moby/moby/api/types/network"
)

// resolvConfs are where the host's name servers are named. Docker's own server at 127.0.0.11
// asks them from inside a box; where systemd-resolved runs, the first file names only itself
// and the second the real ones.
var resolvConfs = []string{"/etc/resolv.conf", "/run/systemd/resolve/resolv.conf"}

// resolvers are the host's name servers that a box may ask.
func resolvers(files []string) []netip.Addr {
	var list []netip.Addr
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(data)) {
			f := strings.Fields(line)
			if len(f) < 2 || f[0] != "nameserver" {
				continue
			}
			addr, err := netip.ParseAddr(f[1])
			// A name server on the host's loopback is asked from the host, not from the box.
			if err != nil || addr.IsLoopback() || addr.Zone() != "" || slices.Contains(list, addr.Unmap()) {
				continue
			}
			list = append(list, addr.Unmap())
		}
	}
	return list
}

// refused lists what a box must not reach although its address may look public: the host's
// own addresses; the networks that it is directly in, seen from its default route; and on
// a "lan" link the networks of other containers.
func refused(kind Network, own network.Network, others []network.Network) ([]netip.Prefix, error) {
	interfaces, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	list := gateways(own)
	out := defaultInterfaces()
	for _, i := range interfaces {
		addrs, err := i.Addrs()
		if err != nil {
			return nil, err
		}
		for _, a := range addrs {
			p, err := netip.ParsePrefix(a.String())
			if err != nil || p.Addr().IsLoopback() || p.Addr().IsLinkLocalUnicast() {
				continue // refused for everyone
			}
			list = append(list, netip.PrefixFrom(p.Addr(), p.Addr().BitLen()))
			if kind != LAN && slices.Contains(out, i.Name) {
				list = append(list, p.Masked())
			}
		}
	}
	if kind == LAN {
		for _, n := range others {
			list = append(list, subnets(n)...)
		}
	}
	slices.SortFunc(list, func(a, b netip.Prefix) int { return strings.Compare(a.String(), b.String()) })
	return slices.Compact(list), nil
}

// defaultInterfaces are those that a default route leaves by, see proc(5).
func defaultInterfaces() []string {
	var list []string
	for _, name := range []string{"/proc/net/route", "/proc/net/ipv6_route"} {
		f, err := os.Open(name)
		if err != nil {
			continue
		}
		for lines := bufio.NewScanner(f); lines.Scan(); {
			if i := defaultRoute(strings.Fields(lines.Text())); i != "" && i != "lo" {
				list = append(list, i)
			}
		}
		_ = f.Close()
	}
	return list
}

// defaultRoute is the interface of one line of either file if it is a default route.
func defaultRoute(f []string) string {
	switch {
	case len(f) == 11 && f[1] == "00000000" && isZeroMask(f[7]):
		return f[0]
	case len(f) == 10 && f[1] == "00" && strings.Trim(f[0], "0") == "":
		return f[9]
	}
	return ""
}

func isZeroMask(s string) bool {
	b, err := hex.DecodeString(s)
	return err == nil && len(b) == 4 && binary.LittleEndian.Uint32(b) == 0
}
