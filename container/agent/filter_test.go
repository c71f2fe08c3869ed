package agent

import (
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"
)

// packet is what the rules see of one.
type packet struct {
	to          string
	proto       byte
	port        uint16
	icmp6       bool
	lo, in      bool
	established bool
}

// decide is what the kernel does with rules: the first that matches counts.
func decide(rules []rule, p packet, policy verdict) verdict {
	to := netip.MustParseAddr(p.to)
	for _, r := range rules {
		switch {
		case r.fromLo && (!p.lo || !p.in), r.toLo && (!p.lo || p.in),
			r.established && !p.established,
			r.icmp6 && !p.icmp6,
			r.proto != 0 && (r.proto != p.proto || r.port != p.port),
			r.to.IsValid() && !r.to.Contains(to):
			continue
		}
		return r.verdict
	}
	return policy
}

func TestOutbound(t *testing.T) {
	tcp, udp := byte(unix.IPPROTO_TCP), byte(unix.IPPROTO_UDP)
	c := Limits{
		Resolvers: []netip.Addr{netip.MustParseAddr("192.168.1.1"), netip.MustParseAddr("fd00::53")},
		Refuse:    prefixes("203.0.113.7/32", "2001:db8:1::/64", "172.18.0.1/32"),
	}
	for _, x := range []struct {
		name          string
		p             packet
		internet, lan verdict
	}{
		{"public", packet{to: "1.1.1.1", proto: tcp, port: 443}, accept, accept},
		{"public, IPv6", packet{to: "2606:4700::1111", proto: tcp, port: 443}, accept, accept},
		{"beside the private range", packet{to: "172.32.0.1", proto: tcp, port: 22}, accept, accept},
		{"below the carrier range", packet{to: "100.63.255.255", proto: tcp, port: 22}, accept, accept},
		{"host, public", packet{to: "203.0.113.7", proto: tcp, port: 22}, reject, reject},
		{"host's network, IPv6", packet{to: "2001:db8:1::99", proto: tcp, port: 22}, reject, reject},
		{"bridge", packet{to: "172.18.0.1", proto: tcp, port: 2375}, reject, reject},
		{"10", packet{to: "10.1.2.3", proto: tcp, port: 22}, reject, accept},
		{"172.16", packet{to: "172.31.255.255", proto: udp, port: 1}, reject, accept},
		{"192.168", packet{to: "192.168.1.2", proto: tcp, port: 80}, reject, accept},
		{"carrier", packet{to: "100.64.0.1", proto: tcp, port: 80}, reject, accept},
		{"unique local", packet{to: "fd12::1", proto: tcp, port: 80}, reject, accept},
		{"metadata", packet{to: "169.254.169.254", proto: tcp, port: 80}, reject, reject},
		{"metadata, AWS IPv6", packet{to: "fd00:ec2::254", proto: tcp, port: 80}, reject, reject},
		{"metadata, Alibaba", packet{to: "100.100.100.200", proto: tcp, port: 80}, reject, reject},
		{"metadata, Azure", packet{to: "168.63.129.16", proto: tcp, port: 80}, reject, reject},
		{"name server, udp", packet{to: "192.168.1.1", proto: udp, port: 53}, accept, accept},
		{"name server, tcp", packet{to: "192.168.1.1", proto: tcp, port: 53}, accept, accept},
		{"name server, IPv6", packet{to: "fd00::53", proto: udp, port: 53}, accept, accept},
		{"name server, other port", packet{to: "192.168.1.1", proto: tcp, port: 80}, reject, accept},
		{"Docker's name server", packet{to: "127.0.0.11", proto: udp, port: 53, lo: true}, accept, accept},
		{"loopback", packet{to: "127.0.0.1", proto: tcp, port: 8888, lo: true}, accept, accept},
		{"loopback, IPv6", packet{to: "::1", proto: tcp, port: 8888, lo: true}, accept, accept},
		{"loopback through a wire", packet{to: "127.0.0.1", proto: tcp, port: 80}, reject, reject},
		{"this network", packet{to: "0.0.0.0", proto: tcp, port: 80}, reject, reject},
		{"broadcast", packet{to: "255.255.255.255", proto: udp, port: 67}, reject, reject},
		{"multicast", packet{to: "224.0.0.251", proto: udp, port: 5353}, reject, reject},
		{"multicast, IPv6", packet{to: "ff02::fb", proto: udp, port: 5353}, reject, reject},
		{"link-local, IPv6", packet{to: "fe80::1", proto: tcp, port: 22}, reject, reject},
		{"neighbours", packet{to: "ff02::1:ff00:1", icmp6: true}, accept, accept},
		{"IPv4 in IPv6", packet{to: "::ffff:10.0.0.1", proto: tcp, port: 22}, reject, reject},
		{"translated", packet{to: "64:ff9b::a00:1", proto: tcp, port: 22}, reject, reject},
		{"unassigned IPv6", packet{to: "4000::1", proto: tcp, port: 22}, reject, reject},
		{"answer to a known connection", packet{to: "10.1.2.3", proto: tcp, port: 22, established: true}, accept, accept},
	} {
		if got := decide(outbound("internet", c), x.p, accept); got != x.internet {
			t.Errorf("internet: %s: got %s, want %s", x.name, got, x.internet)
		}
		if got := decide(outbound("lan", c), x.p, accept); got != x.lan {
			t.Errorf("lan: %s: got %s, want %s", x.name, got, x.lan)
		}
	}
}

func TestInbound(t *testing.T) {
	const drop verdict = "drop"
	for _, x := range []struct {
		name string
		p    packet
		want verdict
	}{
		{"a stranger", packet{to: "172.18.0.2", proto: unix.IPPROTO_TCP, port: 22, in: true}, drop},
		{"loopback", packet{to: "127.0.0.1", proto: unix.IPPROTO_TCP, port: 22, in: true, lo: true}, accept},
		{"answer", packet{to: "172.18.0.2", proto: unix.IPPROTO_TCP, port: 44444, in: true, established: true}, accept},
		{"neighbour", packet{to: "fe80::2", icmp6: true, in: true}, accept},
	} {
		if got := decide(inbound(), x.p, drop); got != x.want {
			t.Errorf("%s: got %s, want %s", x.name, got, x.want)
		}
	}
}

// TestEncode keeps every rule from matching more in the kernel than in the table: each of its
// conditions must be there, and a refusal must come in both its forms.
func TestEncode(t *testing.T) {
	for _, r := range append(inbound(), outbound("internet", Limits{Resolvers: []netip.Addr{netip.MustParseAddr("9.9.9.9")}})...) {
		all := encode(r)
		want := 1
		switch {
		case r.icmp6:
			want = len(neighbour)
		case r.verdict == reject:
			want = 2
		}
		if len(all) != want {
			t.Errorf("%s: %d kernel rules, want %d", r.why, len(all), want)
		}
		for _, exprs := range all {
			if len(exprs) < 3 {
				t.Errorf("%s: matches everything", r.why)
			}
		}
	}
}

func TestUnknownNetworkFails(t *testing.T) {
	if err := limitNetwork("host"); err == nil {
		t.Error("no error")
	}
	if err := limitNetwork(""); err == nil {
		t.Error("no error for a config without a network")
	}
	if err := limitNetwork("internet"); err == nil {
		t.Error("no error without limits")
	}
}
