package link

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
	"time"
)

// The limits of a link.
const (
	MaxSpan   = 366 * 24 * time.Hour // the longest that a link may still wait or last, seen from now
	MaxGrants = 16                   // a link's own token and its companions, used ones too
)

// NoKey stands in the place of a fingerprint for a guest without a key.
const NoKey = "no key"

// Deadline is when the link ends by itself: ClaimBy while it is open, EndsAt once it is
// claimed, zero after its end.
func (l *Link) Deadline() time.Time {
	switch l.State {
	case Open:
		return l.ClaimBy
	case Claimed:
		return l.EndsAt
	case Ended:
	}
	return time.Time{}
}

// Bound reports whether the grant has been claimed.
func (g Grant) Bound() bool { return g.Guest.Fingerprint != "" }

// named fills in the fingerprint of a guest (as ssh-keygen -l writes it), or NoKey.
func (g Guest) named() Guest {
	switch {
	case len(g.Key) == 0:
		return Guest{Fingerprint: NoKey}
	case g.Fingerprint == "":
		sum := sha256.Sum256(g.Key)
		g.Fingerprint = "SHA256:" + base64.RawStdEncoding.EncodeToString(sum[:])
	}
	return Guest{Key: bytes.Clone(g.Key), Fingerprint: g.Fingerprint}
}

// same reports whether both guests proved the same key, or both proved none.
func (g Guest) same(other Guest) bool { return bytes.Equal(g.Key, other.Key) }

// clone copies everything the link refers to, so that nobody shares memory with the book.
func (l *Link) clone() Link {
	c := *l
	c.Terms.Mounts = slices.Clone(l.Terms.Mounts)
	c.Grants = slices.Clone(l.Grants)
	for i := range c.Grants {
		c.Grants[i].Guest.Key = bytes.Clone(l.Grants[i].Guest.Key)
	}
	return c
}

// alive returns nil while the link can be used, otherwise an *EndedError. A link whose
// time is up counts as expired from that instant, swept or not.
func (l *Link) alive(now time.Time) error {
	if l.State == Ended {
		return &EndedError{Reason: l.Reason, At: l.EndedAt}
	}
	if due := l.Deadline(); !now.Before(due) {
		return &EndedError{Reason: Expired, At: due}
	}
	return nil
}

// admit says what guest g gets with grant i: an error, or nil; bind is true when the
// grant has to be bound to g first. It changes nothing.
func (l *Link) admit(i int, g Guest, now time.Time) (bind bool, err error) {
	if err := l.alive(now); err != nil {
		return false, err
	}
	held := l.Grants[i]
	switch {
	case !held.Bound() && l.State == Open && l.Terms.Approve && !l.Approved:
		return false, ErrWaiting
	case !held.Bound():
		return true, nil
	case held.Guest.same(g):
		return false, nil
	case len(held.Guest.Key) == 0:
		return false, ErrKeyless
	}
	return false, ErrClaimed
}

// bind gives grant i to g. The first grant to be bound claims the link.
func (l *Link) bind(i int, g Guest, now time.Time) {
	l.Grants[i].Guest = g.named()
	l.Grants[i].ClaimedAt = now
	if l.State == Open {
		l.State = Claimed
		l.ClaimedAt = now
		l.EndsAt = now.Add(l.Terms.For)
	}
}

// companion adds a grant that nobody has claimed.
func (l *Link) companion(h Hash, now time.Time) error {
	if err := l.alive(now); err != nil {
		return err
	}
	if l.State != Claimed {
		return ErrOpen
	}
	if len(l.Grants) >= MaxGrants {
		return ErrTooMany
	}
	l.Grants = append(l.Grants, Grant{Hash: h})
	return nil
}

// extend moves the deadline of a link that is alive.
func (l *Link) extend(by time.Duration, now time.Time) error {
	if err := l.alive(now); err != nil {
		return err
	}
	if by <= 0 {
		return fmt.Errorf("%w: an extension is longer than nothing", ErrInvalid)
	}
	due := l.Deadline().Add(by)
	if due.After(now.Add(MaxSpan)) {
		return ErrTooLong
	}
	if l.State == Open {
		l.ClaimBy = due
	} else {
		l.EndsAt = due
	}
	return nil
}

// end ends the link. A link that has ended keeps its first reason; false then.
func (l *Link) end(r Reason, now time.Time) bool {
	if l.State == Ended {
		return false
	}
	l.State, l.Reason, l.EndedAt = Ended, r, now
	return true
}

// fresh checks a link that is about to enter the book.
func (l *Link) fresh(now time.Time) error {
	wrong := ""
	switch {
	case l.ID == "":
		wrong = "no id"
	case l.State != Open:
		wrong = "not open"
	case len(l.Grants) != 1 || l.Grants[0].Hash == Hash{} || l.Grants[0].Bound():
		wrong = "a new link has one grant, unclaimed"
	case l.Terms.For <= 0:
		wrong = "no time from the claim"
	case l.Terms.For > MaxSpan || l.ClaimBy.After(now.Add(MaxSpan)):
		return ErrTooLong
	case l.ClaimBy.IsZero():
		wrong = "no time for the claim"
	}
	if wrong != "" {
		return fmt.Errorf("%w: %s", ErrInvalid, wrong)
	}
	return nil
}
