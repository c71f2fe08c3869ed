package container

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/moby/moby/api/types/network"
)

func TestResolvers(t *testing.T) {
	dir := t.TempDir()
	one, two := filepath.Join(dir, "resolv.conf"), filepath.Join(dir, "real")
	for name, text := range map[string]string{
		one: "# nameserver 1.2.3.4\nnameserver 127.0.0.53\nsearch x\nnameserver fe80::1%eth0\nnameserver\n",
		two: "nameserver 192.168.1.1\nnameserver fd00::1\nnameserver 192.168.1.1\nnameserver x\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got := fmt.Sprint(resolvers([]string{one, filepath.Join(dir, "none"), two}))
	if got != "[192.168.1.1 fd00::1]" {
		t.Errorf("got %s", got)
	}
}

func TestDefaultRoute(t *testing.T) {
	for line, want := range map[string]string{
		"eth0 00000000 010002C0 0003 0 0 0 00000000 0 0 0":                                                                      "eth0",
		"eth0 000002C0 00000000 0001 0 0 0 00FFFFFF 0 0 0":                                                                      "",
		"vpn0 00000000 00000000 0001 0 0 0 00000080 0 0 0":                                                                      "",
		"Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT":                                                "",
		"00000000000000000000000000000000 00 00000000000000000000000000000000 00 fe800000000000000000000000000001 1 1 0 3 eth1": "eth1",
		"fd000000000000000000000000000000 40 00000000000000000000000000000000 00 00000000000000000000000000000000 1 1 0 1 eth1": "",
		"": "",
	} {
		if got := defaultRoute(strings.Fields(line)); got != want {
			t.Errorf("%q: got %q, want %q", line, got, want)
		}
	}
}

func TestRefused(t *testing.T) {
	own := network.Network{IPAM: network.IPAM{Config: []network.IPAMConfig{{
		Subnet: netip.MustParsePrefix("10.200.0.0/16"), Gateway: netip.MustParseAddr("10.200.0.1"),
	}}}}
	other := network.Network{IPAM: network.IPAM{Config: []network.IPAMConfig{{Subnet: netip.MustParsePrefix("10.201.0.0/16")}}}}
	gateway, subnet := netip.MustParsePrefix("10.200.0.1/32"), netip.MustParsePrefix("10.201.0.0/16")
	for _, n := range []Network{Internet, LAN} {
		got, err := refused(n, own, []network.Network{other})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(got, gateway) {
			t.Errorf("%s: the host's side of the bridge is missing in %v", n, got)
		}
		if slices.Contains(got, subnet) != (n == LAN) {
			t.Errorf("%s: another container's network in %v", n, got)
		}
		for _, p := range got {
			if p.Addr().IsLoopback() || p.Bits() == 0 {
				t.Errorf("%s: %s", n, p)
			}
		}
	}
}
