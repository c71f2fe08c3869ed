package tunnel_test

import (
	"io"
	"net"
	"net/netip"
	"testing"

	"github.com/berth-gpu/berth/tunnel"
)

// A load balancer's word is taken from the load balancer alone.
func TestDirectBehindProxies(t *testing.T) {
	const v2 = "\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c\xcb\x00\x71\x05\x7f\x00\x00\x01\x10\x00\x08\xae" // 203.0.113.5:4096
	tests := []struct{ name, trusted, sent, from, got string }{
		{"version 1", "127.0.0.0/8", "PROXY TCP4 203.0.113.5 127.0.0.1 4096 2222\r\nSSH-2.0-x\r\n", "203.0.113.5:4096", "SSH-2.0-x\r\n"},
		{"version 1, IPv6", "127.0.0.1/32", "PROXY TCP6 2001:db8::5 ::1 4096 2222\r\nSSH", "[2001:db8::5]:4096", "SSH"},
		{"version 2", "127.0.0.0/8", v2 + "SSH-2.0-x\r\n", "203.0.113.5:4096", "SSH-2.0-x\r\n"},
		{"somebody else's word", "192.0.2.0/24", "PROXY TCP4 203.0.113.5 127.0.0.1 4096 2222\r\n", "127.0.0.1", "PROXY TCP4 203.0.113.5 127.0.0.1 4096 2222\r\n"},
		{"a load balancer that forgets", "127.0.0.0/8", "SSH-2.0-x\r\n", "127.0.0.1", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := &tunnel.Direct{Addr: "127.0.0.1:0", Proxies: []netip.Prefix{netip.MustParsePrefix(tt.trusted)}}
			ln, err := d.Listen(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			guest, err := net.Dial("tcp", d.Address().String())
			if err != nil {
				t.Fatal(err)
			}
			defer guest.Close()
			if _, err := io.WriteString(guest, tt.sent); err != nil {
				t.Fatal(err)
			}
			if err := guest.(*net.TCPConn).CloseWrite(); err != nil {
				t.Fatal(err)
			}
			c, err := ln.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			got, err := io.ReadAll(c)
			if string(got) != tt.got || (err != nil) != (tt.got == "") {
				t.Errorf("read %q, %v, want %q", got, err, tt.got)
			}
			from := c.RemoteAddr().String()
			if host, _, err := net.SplitHostPort(from); err == nil && host == "127.0.0.1" {
				from = host
			}
			if from != tt.from {
				t.Errorf("the guest comes from %s, want %s", from, tt.from)
			}
		})
	}
}
