package gateway_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	gossh "golang.org/x/crypto/ssh"

	"github.com/berth-gpu/berth/container"
	"github.com/berth-gpu/berth/gateway"
	"github.com/berth-gpu/berth/gateway/gatewaytest"
	"github.com/berth-gpu/berth/gateway/link"
)

// run runs a command on a new login of guest and returns its output.
func run(g *gatewaytest.Gateway, guest *gatewaytest.Guest, command string) (string, error) {
	client, err := g.Dial(guest)
	if err != nil {
		return "", err
	}
	defer func() { _ = client.Close() }()
	sess, err := client.NewSession()
	if err != nil {
		return "", err
	}
	out, err := sess.CombinedOutput(command)
	return string(out), err
}

func state(t *testing.T, g *gatewaytest.Gateway, ref string) gateway.LinkView {
	t.Helper()
	v, err := g.Show(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// noSessions waits until the gateway has noticed that everybody left.
func noSessions(t *testing.T, g *gatewaytest.Gateway, ref string) {
	t.Helper()
	gatewaytest.Eventually(t, "all sessions are gone", func() bool { return len(state(t, g, ref).Sessions) == 0 })
}

func TestClaimByKey(t *testing.T) {
	g := gatewaytest.Start(t)
	res := g.Share(link.Terms{})
	guest := &gatewaytest.Guest{Token: res.Token, Keys: []gossh.Signer{gatewaytest.NewKey(t)}}
	if out, err := run(g, guest, "echo in"); err != nil || out != "in\n" {
		t.Fatalf("first login: %q, %v", out, err)
	}
	v := state(t, g, res.Link.ID)
	if v.State != link.Claimed || v.Guest != gossh.FingerprintSHA256(guest.Keys[0].PublicKey()) || v.EndsAt == nil {
		t.Errorf("after the claim: %+v", v)
	}
	if _, err := run(g, guest, "true"); err != nil {
		t.Errorf("the same key again: %v", err)
	}
	stranger := &gatewaytest.Guest{Token: res.Token, Keys: []gossh.Signer{gatewaytest.NewKey(t)}}
	if _, err := run(g, stranger, "true"); err == nil {
		t.Error("another key got in")
	}
	if !strings.Contains(stranger.Banner, "already claimed with another key") {
		t.Errorf("the stranger read %q", stranger.Banner)
	}
	nobody := &gatewaytest.Guest{Token: res.Token}
	if _, err := run(g, nobody, "true"); err == nil || !strings.Contains(nobody.Banner, "already claimed") {
		t.Errorf("a guest without a key: %v, read %q", err, nobody.Banner)
	}
}

func TestManyKeys(t *testing.T) {
	g := gatewaytest.Start(t)
	res := g.Share(link.Terms{})
	right := gatewaytest.NewKey(t)
	if _, err := run(g, &gatewaytest.Guest{Token: res.Token, Keys: []gossh.Signer{right}}, "true"); err != nil {
		t.Fatal(err)
	}
	many := make([]gossh.Signer, 11, 12)
	for i := range many {
		many[i] = gatewaytest.NewKey(t)
	}
	if _, err := run(g, &gatewaytest.Guest{Token: res.Token, Keys: append(many, right)}, "true"); err != nil {
		t.Errorf("the right key came twelfth: %v", err)
	}
}

func TestKeylessClaimAndInvite(t *testing.T) {
	g := gatewaytest.Start(t)
	res := g.Share(link.Terms{})
	first, err := g.Dial(&gatewaytest.Guest{Token: res.Token})
	if err != nil {
		t.Fatal(err)
	}
	if v := state(t, g, res.Link.ID); v.Guest != link.NoKey {
		t.Errorf("guest is %q", v.Guest)
	}
	second := &gatewaytest.Guest{Token: res.Token}
	if _, err := g.Dial(second); err == nil || !strings.Contains(second.Banner, "one connection at a time") {
		t.Errorf("second connection without a key: %v, read %q", err, second.Banner)
	}
	_ = first.Close()
	noSessions(t, g, res.Link.ID)
	if _, err := run(g, &gatewaytest.Guest{Token: res.Token}, "true"); err != nil {
		t.Errorf("the guest came back: %v", err)
	}
	withKey := &gatewaytest.Guest{Token: res.Token, Keys: []gossh.Signer{gatewaytest.NewKey(t)}}
	if _, err := g.Dial(withKey); err == nil {
		t.Error("a key got into a link that was claimed without one")
	}
}

// TestOfferedIsNotProved: a key that is asked about, but does not sign, claims nothing and is
// nobody (CVE-2024-45337's class). See also TestForgedSignature.
func TestOfferedIsNotProved(t *testing.T) {
	g := gatewaytest.Start(t)
	res := g.Share(link.Terms{})
	owner := gatewaytest.NewKey(t)
	only := &gatewaytest.Guest{Token: res.Token, Keys: []gossh.Signer{unsigning{owner}}}
	if _, err := g.Dial(only); err == nil {
		t.Fatal("got in with a key that cannot sign")
	}
	if v := state(t, g, res.Link.ID); v.State != link.Open {
		t.Fatalf("the link is %s", v.State)
	}
}

// unsigning is a key whose owner is not there: it can be offered but not used.
type unsigning struct{ gossh.Signer }

func (unsigning) Sign(io.Reader, []byte) (*gossh.Signature, error) {
	return nil, errors.New("no private key")
}

func TestRaceForOneLink(t *testing.T) {
	g := gatewaytest.Start(t)
	res := g.Share(link.Terms{Sessions: 30})
	var won atomic.Int32
	var all sync.WaitGroup
	for range 20 {
		guest := &gatewaytest.Guest{Token: res.Token, Keys: []gossh.Signer{gatewaytest.NewKey(t)}}
		all.Go(func() {
			if _, err := run(g, guest, "true"); err == nil {
				won.Add(1)
			} else if !strings.Contains(guest.Banner, "already claimed") {
				t.Errorf("a loser read %q (%v)", guest.Banner, err)
			}
		})
	}
	all.Wait()
	if won.Load() != 1 {
		t.Errorf("%d guests got in", won.Load())
	}
}

// TestNothingBurnsALink: what connects and leaves before a login is through changes nothing.
func TestNothingBurnsALink(t *testing.T) {
	g := gatewaytest.Start(t)
	res := g.Share(link.Terms{})
	for _, say := range []string{"", "SSH-2.0-scan\r\n", "GET / HTTP/1.1\r\n\r\n", "\x16\x03\x01\x02\x00"} {
		c, err := net.Dial("tcp", g.Addr)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(c, say)
		_ = c.Close()
	}
	// a login that ends when the server asks for the keyless answer
	_, err := gossh.Dial("tcp", g.Addr, &gossh.ClientConfig{
		User: res.Token, HostKeyCallback: gossh.InsecureIgnoreHostKey(),
		Auth: []gossh.AuthMethod{gossh.KeyboardInteractive(func(string, string, []string, []bool) ([]string, error) {
			return nil, errors.New("gone")
		})},
	})
	if err == nil {
		t.Fatal("got in without answering")
	}
	if v := state(t, g, res.Link.ID); v.State != link.Open {
		t.Errorf("the link is %s", v.State)
	}
	if _, err := run(g, &gatewaytest.Guest{Token: res.Token}, "true"); err != nil {
		t.Errorf("the guest afterwards: %v", err)
	}
}

func TestRefusals(t *testing.T) {
	g := gatewaytest.Start(t)
	key := gatewaytest.NewKey(t)
	late := g.Share(link.Terms{})
	g.Clock.Move(25 * time.Hour)
	revoked := g.Share(link.Terms{})
	if _, err := g.Revoke(t.Context(), revoked.Link.ID); err != nil {
		t.Fatal(err)
	}
	full := g.Share(link.Terms{Sessions: 1})
	if _, err := g.Dial(&gatewaytest.Guest{Token: full.Token, Keys: []gossh.Signer{key}}); err != nil {
		t.Fatal(err)
	}
	tests := []struct{ name, token, want string }{
		{"unknown", "abcdefghijkmnpqrstuvwxyz23", "no such link"},
		{"no token at all", "root", "no such link"},
		{"expired", late.Token, "expired on"},
		{"revoked", revoked.Token, "took this link back"},
		{"too many sessions", full.Token, "too many sessions"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			guest := &gatewaytest.Guest{Token: tt.token, Keys: []gossh.Signer{key}}
			if _, err := g.Dial(guest); err == nil {
				t.Fatal("got in")
			}
			if !strings.Contains(guest.Banner, tt.want) || strings.Count(guest.Banner, "\n") != 1 {
				t.Errorf("read %q, want one line with %q", guest.Banner, tt.want)
			}
			if strings.Contains(guest.Banner, tt.token) {
				t.Errorf("the refusal repeats the token: %q", guest.Banner)
			}
		})
	}
}

func TestGuessingIsLimited(t *testing.T) {
	g := gatewaytest.Start(t)
	res := g.Share(link.Terms{})
	for i := range 10 {
		_, err := g.Dial(&gatewaytest.Guest{Token: fmt.Sprintf("abcdefghijkmnpqrstuvwxyz%d%d", 2+i/8, 2+i%8)})
		if err == nil {
			t.Fatal("a guess got in")
		}
	}
	guest := &gatewaytest.Guest{Token: res.Token}
	if _, err := g.Dial(guest); err == nil || !strings.Contains(guest.Banner, "too many wrong links") {
		t.Errorf("after ten guesses: %v, read %q", err, guest.Banner)
	}
	g.Clock.Move(time.Minute)
	if _, err := g.Dial(&gatewaytest.Guest{Token: res.Token}); err != nil {
		t.Errorf("a minute later: %v", err)
	}
}

func TestApproval(t *testing.T) {
	g := gatewaytest.Start(t)
	res := g.Share(link.Terms{Approve: true})
	guest := &gatewaytest.Guest{Token: res.Token, Keys: []gossh.Signer{gatewaytest.NewKey(t)}}
	in := make(chan error, 1)
	go func() {
		_, err := run(g, guest, "true")
		in <- err
	}()
	name := gossh.FingerprintSHA256(guest.Keys[0].PublicKey())
	gatewaytest.Eventually(t, "the guest waits", func() bool { return state(t, g, res.Link.ID).Pending == name })
	if _, err := g.Approve(t.Context(), res.Link.ID); err != nil {
		t.Fatal(err)
	}
	if err := <-in; err != nil {
		t.Fatalf("after approval: %v", err)
	}
	if !strings.Contains(guest.Banner, "waiting for the host") {
		t.Errorf("the waiting guest read %q", guest.Banner)
	}
	other := &gatewaytest.Guest{Token: res.Token, Keys: []gossh.Signer{gatewaytest.NewKey(t)}}
	if _, err := run(g, other, "true"); err == nil {
		t.Error("approval let somebody else in")
	}
}

// TestFullDiskLosesNoClaim: a claim that cannot be written does not happen, and can be tried again.
func TestNoContainerLosesNoClaim(t *testing.T) {
	g := gatewaytest.Start(t)
	res := g.Share(link.Terms{})
	g.Boxes.Fail("Box", container.ErrUnavailable)
	g.Boxes.Fail("Start", container.ErrUnavailable)
	g.Boxes.Stop(res.Link.ID)
	gatewaytest.Eventually(t, "the gateway sees the container gone", func() bool {
		return strings.HasPrefix(state(t, g, res.Link.ID).Container, "stopped")
	})
	guest := &gatewaytest.Guest{Token: res.Token, Keys: []gossh.Signer{gatewaytest.NewKey(t)}}
	out, err := run(g, guest, "true")
	var exit *gossh.ExitError
	if !errors.As(err, &exit) || exit.ExitStatus() != 255 || !strings.Contains(out, "not ready; your link stays good") {
		t.Errorf("while docker is dead: %v, read %q", err, out)
	}
	g.Boxes.Fail("Box", nil)
	g.Boxes.Fail("Start", nil)
	gatewaytest.Eventually(t, "the container is back", func() bool { return state(t, g, res.Link.ID).Container == "ready" })
	if out, err := run(g, guest, "echo back"); err != nil || out != "back\n" {
		t.Errorf("afterwards: %q, %v", out, err)
	}
}
