package tunnel_test

import (
	"net"
	"strconv"
	"testing"

	"github.com/berth-gpu/berth/tunnel"
)

func TestDirect(t *testing.T) {
	tests := []struct{ name, addr, advertise, host, at string }{
		{"loopback", "127.0.0.1:0", "", "127.0.0.1", "127.0.0.1"},
		{"IPv6", "[::1]:0", "", "::1", "[::1]"},
		{"a name of its own", "127.0.0.1:0", "gpu.example", "gpu.example", "gpu.example"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := &tunnel.Direct{Addr: tt.addr, Advertise: tt.advertise}
			if len(d.Lines("tok")) > 0 {
				t.Error("a closed door has lines")
			}
			ln, err := d.Listen(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			all := d.Lines("tok")
			if len(all) != 1 {
				t.Fatalf("lines are %+v", all)
			}
			lines := all[0]
			port := strconv.Itoa(lines.Port)
			if lines.Host != tt.host || lines.Port == 0 ||
				lines.SSH != "ssh -p "+port+" tok@"+tt.host ||
				lines.SCP != "scp -P "+port+" FILE tok@"+tt.at+":" ||
				lines.SFTP != "sftp -P "+port+" tok@"+tt.at {
				t.Errorf("lines are %+v", lines)
			}
			c, err := net.Dial("tcp", ln.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			_ = c.Close()
			if err := d.Close(); err != nil {
				t.Error(err)
			}
			if len(d.Lines("tok")) > 0 {
				t.Error("a closed door has lines")
			}
		})
	}
}

func TestDirectEverywhere(t *testing.T) {
	d := &tunnel.Direct{Addr: ":0"}
	if _, err := d.Listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	all := d.Lines("tok")
	if len(all) == 0 {
		t.Fatal("guests are told nothing")
	}
	for _, lines := range all {
		if ip := net.ParseIP(lines.Host); ip == nil || ip.IsUnspecified() || ip.IsLinkLocalUnicast() {
			t.Errorf("guests are told %q", lines.Host)
		}
	}
}

func TestDirectPortTaken(t *testing.T) {
	first := &tunnel.Direct{Addr: "127.0.0.1:0"}
	ln, err := first.Listen(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = first.Close() }()
	if _, err := (&tunnel.Direct{Addr: ln.Addr().String()}).Listen(t.Context()); err == nil {
		t.Error("one port was opened twice")
	}
}
