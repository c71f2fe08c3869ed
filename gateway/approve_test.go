package gateway_test

import (
	"slices"
	"strings"
	"sync"
	"testing"

	gossh "golang.org/x/crypto/ssh"

	"github.com/berth-gpu/berth/gateway"
	"github.com/berth-gpu/berth/gateway/gatewaytest"
	"github.com/berth-gpu/berth/gateway/link"
)

// events counts the audit log's lines of one kind.
func events(t *testing.T, g *gatewaytest.Gateway, kind string) int {
	t.Helper()
	all, err := g.Events(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, e := range all {
		if e.Event == kind {
			n++
		}
	}
	return n
}

// together logs the guest in over n connections at once.
func together(t *testing.T, g *gatewaytest.Gateway, guest gatewaytest.Guest, n int) {
	t.Helper()
	var all sync.WaitGroup
	for range n {
		mine := guest
		all.Go(func() {
			if _, err := run(g, &mine, "true"); err != nil {
				t.Errorf("login: %v, read %q", err, mine.Banner)
			}
		})
	}
	all.Wait()
}

// TestOneClaimIsNotedOnce: an editor opens several connections at once; the link is claimed by
// one of them only, also where the host had to approve.
func TestOneClaimIsNotedOnce(t *testing.T) {
	for _, approve := range []bool{false, true} {
		g := gatewaytest.Start(t)
		res := g.Share(link.Terms{Sessions: 30, Approve: approve})
		guest := gatewaytest.Guest{Token: res.Token, Keys: []gossh.Signer{gatewaytest.NewKey(t)}}
		if approve {
			go func() {
				gatewaytest.Eventually(t, "all of them wait", func() bool { return events(t, g, "link.waiting") == 16 })
				if _, err := g.Approve(t.Context(), res.Link.ID); err != nil {
					t.Error(err)
				}
			}()
		}
		together(t, g, guest, 16)
		if n := events(t, g, "link.claimed"); n != 1 {
			t.Errorf("approve %v: the audit log says %d times that the link was claimed", approve, n)
		}
	}
}

// TestKickTurnsAway: the host who does not know the waiting key sends its owner away, at once
// for all their keys, and the link stays good for the right one.
func TestKickTurnsAway(t *testing.T) {
	g := gatewaytest.Start(t)
	res := g.Share(link.Terms{Approve: true})
	stranger := &gatewaytest.Guest{Token: res.Token, Keys: []gossh.Signer{gatewaytest.NewKey(t), gatewaytest.NewKey(t)}}
	out := make(chan error, 1)
	go func() {
		_, err := g.Dial(stranger)
		out <- err
	}()
	waits := func(key gossh.Signer) func() bool {
		return func() bool { return state(t, g, res.Link.ID).Pending == gossh.FingerprintSHA256(key.PublicKey()) }
	}
	gatewaytest.Eventually(t, "the stranger waits", waits(stranger.Keys[0]))
	if n, err := g.Kick(t.Context(), res.Link.ID); n != 1 || err != nil {
		t.Fatalf("kick: %d, %v", n, err)
	}
	if err := <-out; err == nil || !strings.Contains(stranger.Banner, "did not let you in") {
		t.Errorf("the stranger: %v, read %q", err, stranger.Banner)
	}
	if v := state(t, g, res.Link.ID); v.Pending != "" || v.State != link.Open {
		t.Errorf("afterwards %q waits for a link that is %s", v.Pending, v.State)
	}

	guest := &gatewaytest.Guest{Token: res.Token, Keys: []gossh.Signer{gatewaytest.NewKey(t)}}
	in := make(chan error, 1)
	go func() {
		_, err := run(g, guest, "true")
		in <- err
	}()
	gatewaytest.Eventually(t, "the guest waits", waits(guest.Keys[0]))
	if _, err := g.Approve(t.Context(), res.Link.ID); err != nil {
		t.Fatal(err)
	}
	if err := <-in; err != nil {
		t.Errorf("the guest: %v, read %q", err, guest.Banner)
	}
}

// TestKickForgetsOneWhoGaveUp: who asked first and went away does not hold the place for ever.
func TestKickForgetsOneWhoGaveUp(t *testing.T) {
	g := gatewaytest.Start(t)
	res := g.Share(link.Terms{Approve: true})
	gone := gatewaytest.NewKey(t)
	if _, _, err := g.Book.Claim(hashOf(t, res.Token), link.Guest{Key: gone.PublicKey().Marshal()}); err == nil {
		t.Fatal("claimed without approval")
	}
	if n, err := g.Kick(t.Context(), res.Link.ID); n != 1 || err != nil {
		t.Fatalf("kick: %d, %v", n, err)
	}
	if v := state(t, g, res.Link.ID); v.Pending != "" {
		t.Errorf("%q still waits", v.Pending)
	}
}

func hashOf(t *testing.T, token string) link.Hash {
	t.Helper()
	parsed, err := link.Parse(token)
	if err != nil {
		t.Fatal(err)
	}
	return parsed.Hash()
}

// TestCompanionIsNoted: the host can read who joined by an invitation.
func TestCompanionIsNoted(t *testing.T) {
	g := gatewaytest.Start(t)
	res := g.Share(link.Terms{})
	first := &gatewaytest.Guest{Token: res.Token, Keys: []gossh.Signer{gatewaytest.NewKey(t)}}
	if _, err := run(g, first, "true"); err != nil {
		t.Fatal(err)
	}
	token, hash := link.Mint()
	if err := g.Book.Companion(res.Link.ID, hash); err != nil {
		t.Fatal(err)
	}
	second := &gatewaytest.Guest{Token: token.Reveal(), Keys: []gossh.Signer{gatewaytest.NewKey(t)}}
	together(t, g, *second, 2)
	all, err := g.Events(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	joined := slices.IndexFunc(all, func(e gateway.Event) bool { return e.Event == "link.joined" })
	if joined < 0 || all[joined].Key != gossh.FingerprintSHA256(second.Keys[0].PublicKey()) || events(t, g, "link.joined") != 1 {
		t.Errorf("the log says %+v", all)
	}
}
