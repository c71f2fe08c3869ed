package gateway_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	gossh "golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/berth-gpu/berth/gateway/gatewaytest"
	"github.com/berth-gpu/berth/gateway/link"
)

// summing answers every connection with the sum of what it read up to the end, which only
// works where a half-close gets through.
func summing(ln net.Listener) {
	for {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		go func() {
			h := sha256.New()
			_, _ = io.Copy(h, c)
			_, _ = fmt.Fprintf(c, "%x", h.Sum(nil))
			_ = c.Close()
		}()
	}
}

// checkSum sends some data and expects its sum.
func checkSum(t *testing.T, c net.Conn) {
	t.Helper()
	data := bytes.Repeat([]byte("berth"), 300_000)
	go func() {
		_, _ = c.Write(data)
		_ = c.(interface{ CloseWrite() error }).CloseWrite()
	}()
	got, err := io.ReadAll(c)
	if want := fmt.Sprintf("%x", sha256.Sum256(data)); string(got) != want || err != nil {
		t.Errorf("sum is %q (%v), want %q", got, err, want)
	}
	_ = c.Close()
}

func TestForwards(t *testing.T) {
	listenTCP := func(t *testing.T) net.Listener {
		t.Helper()
		return listen(t, "tcp", "127.0.0.1:0")
	}
	listenUnix := func(t *testing.T) net.Listener {
		t.Helper()
		return listen(t, "unix", filepath.Join(t.TempDir(), "s"))
	}
	_, client := login(t)
	t.Run("direct tcp", func(t *testing.T) {
		ln := listenTCP(t)
		parallel(t, func() (net.Conn, error) { return client.Dial("tcp", ln.Addr().String()) })
	})
	t.Run("direct unix", func(t *testing.T) {
		ln := listenUnix(t)
		parallel(t, func() (net.Conn, error) { return client.Dial("unix", ln.Addr().String()) })
	})
	t.Run("refused", func(t *testing.T) {
		ln := listenTCP(t)
		_ = ln.Close()
		if _, err := client.Dial("tcp", ln.Addr().String()); err == nil || !strings.Contains(err.Error(), "refused") {
			t.Errorf("dialling a closed port: %v", err)
		}
	})
	t.Run("remote tcp", func(t *testing.T) {
		ln, err := client.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go summing(ln)
		parallel(t, func() (net.Conn, error) { return net.Dial("tcp", ln.Addr().String()) })
		_ = ln.Close()
		gatewaytest.Eventually(t, "the port is free again", func() bool {
			_, err := net.Dial("tcp", ln.Addr().String())
			return err != nil
		})
	})
	t.Run("remote unix", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "r")
		ln, err := client.ListenUnix(path)
		if err != nil {
			t.Fatal(err)
		}
		go summing(ln)
		parallel(t, func() (net.Conn, error) { return net.Dial("unix", path) })
	})
}

func listen(t *testing.T, network, address string) net.Listener {
	t.Helper()
	ln, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	go summing(ln)
	return ln
}

func parallel(t *testing.T, dial func() (net.Conn, error)) {
	t.Helper()
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			c, err := dial()
			if err != nil {
				t.Error(err)
				return
			}
			checkSum(t, c)
		})
	}
	all.Wait()
}

// TestForwardsEndWithTheirSession: a lost client leaves no listener, and nobody cancels
// another's.
func TestForwardsEndWithTheirSession(t *testing.T) {
	g, client := login(t)
	ln, err := client.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	other := g.Share(link.Terms{})
	stranger, err := g.Dial(&gatewaytest.Guest{Token: other.Token})
	if err != nil {
		t.Fatal(err)
	}
	port := uint32(ln.Addr().(*net.TCPAddr).Port)
	ok, _, err := stranger.SendRequest("cancel-tcpip-forward", true, gossh.Marshal(&struct {
		Host string
		Port uint32
	}{"127.0.0.1", port}))
	if ok || err != nil {
		t.Errorf("a stranger cancelled the forward: %v, %v", ok, err)
	}
	_ = client.Conn.Close()
	gatewaytest.Eventually(t, "the port is free", func() bool {
		again, err := net.Listen("tcp", ln.Addr().String())
		if err == nil {
			_ = again.Close()
		}
		return err == nil
	})
}

func TestAgentForwarding(t *testing.T) {
	_, client := login(t)
	keyring := agent.NewKeyring()
	if err := agent.ForwardToAgent(client, keyring); err != nil {
		t.Fatal(err)
	}
	for _, asked := range []bool{true, false} {
		sess, err := client.NewSession()
		if err != nil {
			t.Fatal(err)
		}
		if asked {
			if err := agent.RequestAgentForwarding(sess); err != nil {
				t.Fatal(err)
			}
		}
		out, _ := sess.CombinedOutput(`echo "$SSH_AUTH_SOCK"; stat -c '%a' "$SSH_AUTH_SOCK" "$(dirname "$SSH_AUTH_SOCK")"; ssh-add -l`)
		if asked && !strings.Contains(string(out), "600\n700\nThe agent has no identities") {
			t.Errorf("with forwarding: %q", out)
		}
		if !asked && !strings.HasPrefix(string(out), "\n") {
			t.Errorf("without: %q", out)
		}
	}
}
