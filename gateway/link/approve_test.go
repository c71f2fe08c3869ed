package link_test

import (
	"errors"
	"testing"
	"time"

	"github.com/berth-gpu/berth/gateway/link"
)

// waitFor has a guest ask for a link that needs approval.
func waitFor(t *testing.T, b *book, h link.Hash, g link.Guest) {
	t.Helper()
	if _, _, err := b.Claim(h, g); !errors.Is(err, link.ErrWaiting) {
		t.Fatalf("claim: %v", err)
	}
}

func TestApproveTheOneWhoWaits(t *testing.T) {
	b := newBook(t)
	h := b.add(theID, requireApproval)
	waitFor(t, b, h, ann)
	if g, ok := b.Pending(theID); !ok || g.Fingerprint != ann.Fingerprint {
		t.Fatalf("pending: %v %v", g, ok)
	}
	b.advance(time.Minute)
	l, err := b.Approve(theID)
	if err != nil {
		t.Fatal(err)
	}
	if l.State != link.Claimed || l.Grants[0].Guest.Fingerprint != ann.Fingerprint || !l.ClaimedAt.Equal(start.Add(time.Minute)) {
		t.Fatalf("approved: %v for %v at %v", l.State, l.Grants[0].Guest, l.ClaimedAt)
	}
	if _, ok := b.Pending(theID); ok {
		t.Error("still pending")
	}
	b.reopen()
	b.claim(h, ann)
	if err := b.Check(h, bob); !errors.Is(err, link.ErrClaimed) {
		t.Errorf("another guest: %v", err)
	}
}

// TestPendingKeepsTheFirst: the host approves the guest they saw, not one who came between.
func TestPendingKeepsTheFirst(t *testing.T) {
	b := newBook(t)
	h := b.add(theID, requireApproval)
	waitFor(t, b, h, ann)
	waitFor(t, b, h, bob)
	b.Withdraw(theID, bob) // hangs up; was not the one who is pending
	if g, _ := b.Pending(theID); g.Fingerprint != ann.Fingerprint {
		t.Fatalf("pending: %v", g.Fingerprint)
	}
	b.Withdraw(theID, ann)
	if _, ok := b.Pending(theID); ok {
		t.Fatal("pending after hanging up")
	}
	waitFor(t, b, h, nobody)
	if g, ok := b.Pending(theID); !ok || g.Fingerprint != link.NoKey {
		t.Fatalf("pending: %v %v", g, ok)
	}
}

func TestApproveTheNextOne(t *testing.T) {
	b := newBook(t)
	h := b.add(theID, requireApproval)
	waitFor(t, b, h, ann)
	b.Withdraw(theID, ann)
	b.approve(theID)
	if l := b.get(theID); l.State != link.Open || !l.Approved {
		t.Fatalf("state %v, approved %v", l.State, l.Approved)
	}
	b.reopen()
	b.claim(h, bob)
}

// TestPendingIsForgotten: after a restart nobody waits, and after the end neither.
func TestPendingIsForgotten(t *testing.T) {
	b := newBook(t)
	waitFor(t, b, b.add(theID, requireApproval), ann)
	b.reopen()
	if _, ok := b.Pending(theID); ok {
		t.Error("pending after a restart")
	}
	waitFor(t, b, hashOf("first token of "+theID), ann)
	b.end(theID, link.Revoked)
	if _, ok := b.Pending(theID); ok {
		t.Error("pending after the end")
	}
}

func TestApproveWithoutNeed(t *testing.T) {
	b := newBook(t)
	b.add(theID)
	before := b.content()
	b.approve(theID)
	if after := b.content(); after != before {
		t.Errorf("approving a link that needs none changed it to %s", after)
	}
}
