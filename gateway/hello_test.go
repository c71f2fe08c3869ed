package gateway_test

import (
	"io"
	"net"
	"testing"
	"time"

	gossh "golang.org/x/crypto/ssh"

	"github.com/berth-gpu/berth/gateway/gatewaytest"
	"github.com/berth-gpu/berth/gateway/link"
)

// TestCiphers: the quick ciphers are taken wherever the client has them, whatever it puts
// first, and nobody is left without one.
func TestCiphers(t *testing.T) {
	gcm, ctr, chacha := gossh.CipherAES256GCM, gossh.CipherAES256CTR, gossh.CipherChaCha20Poly1305
	tests := []struct {
		name, version string
		offer         []string
		want          string // empty: no login
	}{
		{"OpenSSH as it comes", "SSH-2.0-OpenSSH_9.2p1 Debian-2", []string{chacha, ctr, gcm}, gcm},
		{"OpenSSH without gcm", "SSH-2.0-OpenSSH_9.2p1", []string{chacha, ctr}, ctr},
		{"OpenSSH with chacha20 alone", "SSH-2.0-OpenSSH_9.2p1", []string{chacha}, chacha},
		{"another client chooses by itself", "SSH-2.0-dropbear_2022.83", []string{chacha, ctr, gcm}, ctr},
		{"another client with chacha20 alone", "SSH-2.0-dropbear_2022.83", []string{chacha}, ""},
	}
	g := gatewaytest.Start(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			client, err := gossh.Dial("tcp", g.Addr, &gossh.ClientConfig{
				User: g.Share(link.Terms{}).Token, Auth: []gossh.AuthMethod{gossh.PublicKeys(gatewaytest.NewKey(t))},
				HostKeyCallback: gossh.InsecureIgnoreHostKey(), ClientVersion: tt.version, Config: gossh.Config{Ciphers: tt.offer},
			})
			if tt.want == "" {
				if err == nil {
					t.Fatal("logged in")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = client.Close() }()
			got := client.Conn.(gossh.AlgorithmsConnMetadata).Algorithms()
			if got.Read.Cipher != tt.want || got.Write.Cipher != tt.want {
				t.Errorf("ciphers %s and %s, want %s", got.Read.Cipher, got.Write.Cipher, tt.want)
			}
		})
	}
}

// TestHello: what is no SSH client is turned away, and a greeting that comes in pieces is not.
func TestHello(t *testing.T) {
	g := gatewaytest.Start(t)
	tests := []struct {
		name string
		send []string
	}{
		{"a line without end", []string{string(make([]byte, 300))}},
		{"a packet beyond all size", []string{"SSH-2.0-OpenSSH_9.2\r\n", "\xff\xff\xff\xff\x04"}},
		{"a packet that is all padding", []string{"SSH-2.0-OpenSSH_9.2\r\n", "\x00\x00\x00\x0c\x0c"}},
		{"gone after the version", []string{"SSH-2.0-OpenSSH_9.2\r\n"}},
		{"gone at once", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, err := net.Dial("tcp", g.Addr)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = c.Close() }()
			for _, piece := range tt.send {
				if _, err := io.WriteString(c, piece); err != nil {
					t.Fatal(err)
				}
			}
			_ = c.(*net.TCPConn).CloseWrite()
			_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
			if _, err := io.Copy(io.Discard, c); err != nil {
				if nerr, ok := err.(net.Error); ok && nerr.Timeout() { //nolint:errorlint // as it comes from net
					t.Error("the connection was left open")
				}
			}
		})
	}
}
