package gateway_test

import (
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	gossh "golang.org/x/crypto/ssh"

	"github.com/berth-gpu/berth/gateway"
	"github.com/berth-gpu/berth/gateway/gatewaytest"
	"github.com/berth-gpu/berth/gateway/link"
)

// breaking is a client's connection on which only some writes get through. What comes after
// them breaks it, or, where it hangs, goes nowhere.
type breaking struct {
	net.Conn
	left  atomic.Int32
	hangs bool
}

func (c *breaking) Write(p []byte) (int, error) {
	if c.left.Add(-1) >= 0 {
		return c.Conn.Write(p)
	}
	if c.hangs {
		return len(p), nil
	}
	_ = c.Close()
	return 0, net.ErrClosed
}

// methods are the two ways in.
func methods(t *testing.T) map[string]gossh.AuthMethod {
	t.Helper()
	return map[string]gossh.AuthMethod{
		"with a key": gossh.PublicKeys(gatewaytest.NewKey(t)),
		"without": gossh.KeyboardInteractive(func(string, string, []string, []bool) ([]string, error) {
			return nil, nil
		}),
	}
}

// TestDroppedLoginBurnsNothing cuts a login before each of its packets in turn. Until the last
// one, the proof, the link stays open; the next try finds it so.
func TestDroppedLoginBurnsNothing(t *testing.T) {
	g := gatewaytest.Start(t)
	for name, method := range methods(t) {
		t.Run(name, func(t *testing.T) {
			res := g.Share(link.Terms{})
			for writes := int32(0); ; writes++ {
				raw, err := net.Dial("tcp", g.Addr)
				if err != nil {
					t.Fatal(err)
				}
				c := &breaking{Conn: raw}
				c.left.Store(writes)
				conn, _, _, err := gossh.NewClientConn(c, g.Addr, clientConfig(res.Token, method))
				if err == nil {
					_ = conn.Close()
					if writes < 5 {
						t.Fatalf("a login of %d packets?", writes)
					}
					break
				}
				_ = raw.Close()
				gatewaytest.Eventually(t, "the gateway has noticed", func() bool {
					return strings.Count(g.Log.String(), raw.LocalAddr().String()) > 0
				})
				if v := state(t, g, res.Link.ID); v.State != link.Open {
					t.Fatalf("cut before packet %d, the link is %s", writes+1, v.State)
				}
			}
			if v := state(t, g, res.Link.ID); v.State != link.Claimed {
				t.Errorf("after a login the link is %s", v.State)
			}
		})
	}
}

func clientConfig(token string, method gossh.AuthMethod) *gossh.ClientConfig {
	return &gossh.ClientConfig{User: token, Auth: []gossh.AuthMethod{method}, HostKeyCallback: gossh.InsecureIgnoreHostKey()}
}

// TestStalledLoginIsClosed: a client that falls silent, whatever it said before, is closed when
// its time is up, and claims nothing.
func TestStalledLoginIsClosed(t *testing.T) {
	g := gatewaytest.Start(t, func(s *gateway.Server) { s.Handshake = 300 * time.Millisecond })
	res := g.Share(link.Terms{})
	for name, method := range methods(t) {
		t.Run(name, func(t *testing.T) {
			for writes := range int32(6) {
				raw, err := net.Dial("tcp", g.Addr)
				if err != nil {
					t.Fatal(err)
				}
				c := &breaking{Conn: raw, hangs: true}
				c.left.Store(writes)
				failed := make(chan error, 1)
				go func() {
					_, _, _, err := gossh.NewClientConn(c, g.Addr, clientConfig(res.Token, method))
					failed <- err
				}()
				select {
				case err := <-failed:
					if err == nil {
						t.Fatalf("in, with %d packets", writes)
					}
				case <-time.After(20 * time.Second):
					t.Fatalf("silent after %d packets, and still connected", writes)
				}
				_ = raw.Close()
			}
		})
	}
	if v := state(t, g, res.Link.ID); v.State != link.Open {
		t.Errorf("the link is %s", v.State)
	}
}

// TestSilentConnections: more of them than the gateway holds keep nobody out, and all are gone
// when their time is up.
func TestSilentConnections(t *testing.T) {
	g := gatewaytest.Start(t, func(s *gateway.Server) { s.Handshake = 5 * time.Second })
	res := g.Share(link.Terms{})
	var silent []net.Conn
	for i := range 1200 {
		c, err := net.Dial("tcp", g.Addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		if i%2 == 0 {
			_, _ = io.WriteString(c, "SSH-2.0-silent\r\n")
		}
		silent = append(silent, c)
	}
	guest := &gatewaytest.Guest{Token: res.Token, Keys: []gossh.Signer{gatewaytest.NewKey(t)}}
	if out, err := run(g, guest, "echo in"); out != "in\n" || err != nil {
		t.Errorf("an honest guest among them: %q, %v", out, err)
	}
	for i, c := range silent {
		_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
		_, err := io.Copy(io.Discard, c)
		var timeout net.Error
		if errors.As(err, &timeout) && timeout.Timeout() {
			t.Fatalf("connection %d is still open", i)
		}
	}
}

// forger offers somebody else's key and signs with its own.
type forger struct{ owner, own gossh.Signer }

func (f forger) PublicKey() gossh.PublicKey { return f.owner.PublicKey() }

func (f forger) Sign(rand io.Reader, data []byte) (*gossh.Signature, error) {
	return f.own.Sign(rand, data)
}

// TestForgedSignature: a key whose signature is wrong is nobody. (A story has OpenSSH offer one
// key and prove another over the same connection.)
func TestForgedSignature(t *testing.T) {
	g := gatewaytest.Start(t)
	res := g.Share(link.Terms{})
	owner, mine := gatewaytest.NewKey(t), gatewaytest.NewKey(t)
	alone := &gatewaytest.Guest{Token: res.Token, Keys: []gossh.Signer{forger{owner, mine}}}
	if _, err := g.Dial(alone); err == nil {
		t.Fatal("in with a forged signature")
	}
	if v := state(t, g, res.Link.ID); v.State != link.Open {
		t.Fatalf("the link is %s", v.State)
	}
	if strings.Contains(g.Log.String(), gossh.FingerprintSHA256(owner.PublicKey())) {
		t.Error("the log names the key that was only offered")
	}
}
