package agent

import (
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"
)

// The egress filter lives in the container's own network namespace, so neither a restart of
// Docker nor of the host's firewall touches it, and the guest, who has no NET_ADMIN and no
// NET_RAW, cannot. This file says what it does, as data; nft.go tells the kernel.

// verdict is what happens to a packet.
type verdict string

const (
	accept verdict = "accept"
	reject verdict = "reject" // answered at once: programs fail instead of waiting
)

// rule matches packets; zero fields match all.
type rule struct {
	why         string
	fromLo      bool         // that came in through loopback
	toLo        bool         // that leave through loopback
	established bool         // of a connection that is known, or an error about one
	icmp6       bool         // ICMPv6 of a type in neighbour
	proto       byte         // of this protocol, to port
	port        uint16       //
	to          netip.Prefix // to these addresses
	verdict     verdict
}

// special are destinations that are no part of the internet, RFC 6890 and the registries it
// began: for everyone, whatever the link's network is.
var special = prefixes(
	"0.0.0.0/8",          // this network
	"127.0.0.0/8",        // loopback, outside the loopback interface
	"169.254.0.0/16",     // link-local, and the clouds' metadata servers
	"192.0.0.0/24",       // protocol assignments
	"100.100.100.200/32", // metadata, Alibaba
	"168.63.129.16/32",   // metadata and agent channel, Azure
	"198.18.0.0/15",      // benchmarks
	"224.0.0.0/4",        // multicast
	"240.0.0.0/4",        // reserved, and broadcast
	"fd00:ec2::254/128",  // metadata, AWS
	"fd20:ce::254/128",   // metadata, Google
	"fe80::/10",          // link-local
	"ff00::/8",           // multicast
	"::ffff:0:0/96",      // IPv4 in disguise
	"64:ff9b::/96",       // IPv4 behind a translator
	"2002::/16",          // IPv4 in a tunnel
)

// private are the ranges of local networks: refused on an "internet" link.
var private = prefixes(
	"10.0.0.0/8",
	"172.16.0.0/12",
	"192.168.0.0/16",
	"100.64.0.0/10", // carriers, and VPNs such as Tailscale
	"fc00::/7",
)

// global is all of IPv6 that is assigned for use between networks.
var global = netip.MustParsePrefix("2000::/3")

func prefixes(list ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(list))
	for i, s := range list {
		out[i] = netip.MustParsePrefix(s)
	}
	return out
}

// neighbour are the ICMPv6 types without which there is no IPv6: RFC 4861, and RFC 3810 for
// the multicast groups they use.
var neighbour = []byte{133, 134, 135, 136, 143}

// inbound is what may come into the box; all else is dropped. The gateway needs no way in:
// the agent dials out, and forwards are dialled inside.
func inbound() []rule {
	return []rule{
		{why: "the box itself", fromLo: true, verdict: accept},
		{why: "answers", established: true, verdict: accept},
		{why: "IPv6 neighbours", icmp6: true, verdict: accept},
	}
}

// outbound is where the box may go; what no rule matches may pass.
func outbound(network string, l Limits) []rule {
	rules := []rule{
		{why: "the box itself", toLo: true, verdict: accept},
		{why: "known connections", established: true, verdict: accept},
		{why: "IPv6 neighbours", icmp6: true, verdict: accept},
	}
	// Docker's own server at 127.0.0.11 asks these from inside the box. They come before the
	// refusals since they often are in the host's network, or the host itself.
	for _, a := range l.Resolvers {
		to := netip.PrefixFrom(a, a.BitLen())
		rules = append(rules,
			rule{why: "name server", proto: unix.IPPROTO_UDP, port: 53, to: to, verdict: accept},
			rule{why: "name server", proto: unix.IPPROTO_TCP, port: 53, to: to, verdict: accept})
	}
	for _, p := range l.Refuse {
		rules = append(rules, rule{why: "the host", to: p, verdict: reject})
	}
	refuse, allow := slices.Clone(special), []netip.Prefix{global}
	if network == "lan" {
		allow = append(allow, netip.MustParsePrefix("fc00::/7"))
	} else {
		refuse = append(refuse, private...)
	}
	for _, p := range refuse {
		rules = append(rules, rule{why: "not the internet", to: p, verdict: reject})
	}
	for _, p := range allow {
		rules = append(rules, rule{why: "IPv6 that is in use", to: p, verdict: accept})
	}
	return append(rules, rule{why: "other IPv6", to: netip.MustParsePrefix("::/0"), verdict: reject})
}
