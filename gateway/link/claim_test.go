package link_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/berth-gpu/berth/gateway/link"
)

func TestClaimBindsAndStartsTheClock(t *testing.T) {
	b := newBook(t)
	h := b.add(theID)
	b.advance(10 * time.Minute)
	l := b.claim(h, ann)
	if l.State != link.Claimed || !l.ClaimedAt.Equal(start.Add(10*time.Minute)) || !l.EndsAt.Equal(start.Add(130*time.Minute)) {
		t.Fatalf("claimed as %v at %v until %v", l.State, l.ClaimedAt, l.EndsAt)
	}
	g := l.Grants[0].Guest
	if string(g.Key) != string(ann.Key) || g.Fingerprint != ann.Fingerprint {
		t.Errorf("bound to %v", g)
	}
	b.advance(10 * time.Minute)
	if again := b.claim(h, ann); !again.EndsAt.Equal(l.EndsAt) || !again.ClaimedAt.Equal(l.ClaimedAt) {
		t.Error("coming back moved the link's times")
	}
}

func TestClaimNamesTheGuest(t *testing.T) {
	for _, c := range []struct {
		name  string
		guest link.Guest
		want  string
	}{
		{"no key", link.Guest{}, link.NoKey},
		{"no key, whatever the caller calls it", link.Guest{Fingerprint: "SHA256:made-up"}, link.NoKey},
		// printf key | openssl dgst -sha256 -binary | base64
		{"fingerprint left out", link.Guest{Key: []byte("key")}, "SHA256:LHDhK3oGRvkiefQnx7OOczTY5Tic/xZ6HcMOc/gmtoM"},
	} {
		b := newBook(t)
		if got := b.claim(b.add(theID), c.guest).Grants[0].Guest.Fingerprint; got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestClaimRace: many guests with different keys, and some without, come for one link at
// once. One wins, and it is the one that the book names, after a restart too.
func TestClaimRace(t *testing.T) {
	b := newBook(t)
	h := b.add(theID)
	const guests = 64
	errs := make([]error, guests)
	ready := make(chan struct{})
	var wg sync.WaitGroup
	for i := range guests {
		wg.Go(func() {
			<-ready
			_, _, errs[i] = b.Claim(h, guestNumber(i))
		})
	}
	close(ready)
	wg.Wait()

	winner := -1
	for i, err := range errs {
		switch {
		case err == nil && winner >= 0:
			t.Fatalf("guests %d and %d both won", winner, i)
		case err == nil:
			winner = i
		case !errors.Is(err, link.ErrClaimed):
			t.Errorf("guest %d: %v", i, err)
		}
	}
	if winner < 0 {
		t.Fatal("nobody won")
	}
	b.reopen()
	if got, want := b.get(theID).Grants[0].Guest.Fingerprint, guestNumber(winner).Fingerprint; got != want {
		t.Errorf("the book names %s, the winner is %s", got, want)
	}
}

func guestNumber(i int) link.Guest {
	return link.Guest{Key: fmt.Appendf(nil, "key %d", i), Fingerprint: fmt.Sprintf("SHA256:%d", i)}
}

// TestClaimRaceWithoutKeys: guests who cannot be told apart are all the same guest; the
// gateway lets in one connection at a time.
func TestClaimRaceWithoutKeys(t *testing.T) {
	b := newBook(t)
	h := b.add(theID)
	var wg sync.WaitGroup
	var bound atomic.Int32
	for range 16 {
		wg.Go(func() {
			_, first, err := b.Claim(h, nobody)
			if err != nil {
				t.Errorf("claim: %v", err)
			}
			if first {
				bound.Add(1)
			}
		})
	}
	wg.Wait()
	if bound.Load() != 1 {
		t.Errorf("%d of them bound the link", bound.Load())
	}
	if l := b.get(theID); len(l.Grants) != 1 || l.Grants[0].Guest.Fingerprint != link.NoKey {
		t.Errorf("grants: %+v", l.Grants)
	}
}

// TestVerbRace: every verb at once on one link; whatever the order, the link has ended,
// with the reason of the one who was first, and memory and file agree.
func TestVerbRace(t *testing.T) {
	for range 5 {
		b := newBook(t)
		h := b.add(theID)
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() { _, _, _ = b.Claim(h, guestNumber(i)) })
			wg.Go(func() { _ = b.Companion(theID, hashOf(fmt.Sprint("companion ", i))) })
			wg.Go(func() { _, _ = b.Extend(theID, time.Minute) })
			wg.Go(func() { _, _, _, _, _ = b.List(), b.Due(b.clock()), b.Next(), b.content(), b.Check(h, ann) })
		}
		reasons := make([]link.Reason, 3)
		for i, r := range []link.Reason{link.Expired, link.Revoked, link.Finished} {
			wg.Go(func() {
				l, err := b.End(theID, r)
				if err != nil {
					t.Errorf("end: %v", err)
				}
				reasons[i] = l.Reason
			})
		}
		wg.Wait()
		if reasons[0] != reasons[1] || reasons[1] != reasons[2] {
			t.Errorf("three who ended the link read three reasons: %v", reasons)
		}
		before := b.content()
		b.reopen()
		if after := b.content(); after != before {
			t.Errorf("memory said\n%s\nthe file says\n%s", before, after)
		}
	}
}

func TestCompanions(t *testing.T) {
	b := newBook(t)
	first := b.add(theID)
	l := b.claim(first, nobody)
	extra := hashOf("companion")
	if err := b.Companion(theID, extra); err != nil {
		t.Fatal(err)
	}
	if err := b.Companion(theID, extra); !errors.Is(err, link.ErrExists) {
		t.Errorf("the same token again: %v", err)
	}
	if err := b.Companion(theID, link.Hash{}); !errors.Is(err, link.ErrExists) {
		t.Errorf("a token of nothing: %v", err)
	}
	b.reopen()
	if _, n, ok := b.ByToken(extra); !ok || n != 1 {
		t.Fatalf("companion is grant %d, found %v", n, ok)
	}
	b.advance(time.Minute)
	bound := b.claim(extra, bob)
	if !bound.ClaimedAt.Equal(l.ClaimedAt) || !bound.EndsAt.Equal(l.EndsAt) {
		t.Error("a companion's claim moved the link's times")
	}
	if !bound.Grants[1].ClaimedAt.Equal(start.Add(time.Minute)) || bound.Grants[1].Guest.Fingerprint != bob.Fingerprint {
		t.Errorf("companion bound as %+v", bound.Grants[1])
	}
	if err := b.Check(extra, ann); !errors.Is(err, link.ErrClaimed) {
		t.Errorf("another key on the companion: %v", err)
	}
	if err := b.Check(first, bob); !errors.Is(err, link.ErrKeyless) {
		t.Errorf("the companion's key on the first token: %v", err)
	}
	for n := 2; n < link.MaxGrants; n++ {
		if err := b.Companion(theID, hashOf(fmt.Sprint("more ", n))); err != nil {
			t.Fatalf("grant %d: %v", n, err)
		}
	}
	if err := b.Companion(theID, hashOf("one too many")); !errors.Is(err, link.ErrTooMany) {
		t.Errorf("beyond MaxGrants: %v", err)
	}
}

// TestCompanionNeedsNoSecondApproval: the guest who hands it on was approved.
func TestCompanionNeedsNoSecondApproval(t *testing.T) {
	b := newBook(t)
	h := b.add(theID, requireApproval)
	b.approve(theID)
	b.claim(h, ann)
	if err := b.Companion(theID, hashOf("companion")); err != nil {
		t.Fatal(err)
	}
	b.claim(hashOf("companion"), bob)
}

func TestClockSetBack(t *testing.T) {
	b := newBook(t)
	h := b.add(theID)
	b.claim(h, ann)
	b.advance(3 * time.Hour)
	b.end(theID, link.Expired)
	for range 2 {
		b.advance(-4 * time.Hour) // before the link was made, after the second time
		if _, _, err := b.Claim(h, ann); !errors.Is(err, link.ErrExpired) {
			t.Errorf("at %v: %v", b.clock(), err)
		}
		if _, err := b.Extend(theID, time.Hour); !errors.Is(err, link.ErrEnded) {
			t.Errorf("extend at %v: %v", b.clock(), err)
		}
		b.reopen()
	}
}
