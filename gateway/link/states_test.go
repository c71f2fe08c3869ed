package link_test

import (
	"errors"
	"testing"
	"time"

	"github.com/berth-gpu/berth/gateway/link"
)

const theID = "abcd2345"

// situations are all the places where a link can stand. Each brings the link theID there;
// the claims below use its first token.
var situations = []struct {
	name  string
	setUp func(b *book)
	// what each verb answers, in the order of verbs
	want []error
}{
	{
		"no link", func(*book) {},
		[]error{link.ErrUnknown, link.ErrUnknown, link.ErrUnknown, link.ErrUnknown, link.ErrUnknown, link.ErrUnknown, link.ErrUnknown, link.ErrUnknown},
	},
	{
		"open", func(b *book) { b.add(theID) },
		[]error{nil, nil, nil, link.ErrOpen, nil, nil, nil, link.ErrAlive},
	},
	{
		"open, time is up", func(b *book) { b.add(theID); b.advance(time.Hour) },
		[]error{link.ErrExpired, link.ErrExpired, link.ErrExpired, link.ErrExpired, link.ErrExpired, link.ErrExpired, nil, link.ErrAlive},
	},
	{
		"needs approval", func(b *book) { b.add(theID, requireApproval) },
		[]error{link.ErrWaiting, link.ErrWaiting, link.ErrWaiting, link.ErrOpen, nil, nil, nil, link.ErrAlive},
	},
	{
		"ann waits", func(b *book) { _, _, _ = b.Claim(b.add(theID, requireApproval), ann) },
		[]error{link.ErrWaiting, link.ErrWaiting, link.ErrWaiting, link.ErrOpen, nil, nil, nil, link.ErrAlive},
	},
	{
		"approved, nobody came", func(b *book) { b.add(theID, requireApproval); b.approve(theID) },
		[]error{nil, nil, nil, link.ErrOpen, nil, nil, nil, link.ErrAlive},
	},
	{
		"approved for ann", func(b *book) { _, _, _ = b.Claim(b.add(theID, requireApproval), ann); b.approve(theID) },
		[]error{nil, link.ErrClaimed, link.ErrClaimed, nil, nil, nil, nil, link.ErrAlive},
	},
	{
		"claimed by ann", func(b *book) { b.claim(b.add(theID), ann) },
		[]error{nil, link.ErrClaimed, link.ErrClaimed, nil, nil, nil, nil, link.ErrAlive},
	},
	{
		"claimed without a key", func(b *book) { b.claim(b.add(theID), nobody) },
		[]error{link.ErrKeyless, link.ErrKeyless, nil, nil, nil, nil, nil, link.ErrAlive},
	},
	{
		"claimed by ann, time is up", func(b *book) { b.claim(b.add(theID), ann); b.advance(2 * time.Hour) },
		[]error{link.ErrExpired, link.ErrExpired, link.ErrExpired, link.ErrExpired, link.ErrExpired, link.ErrExpired, nil, link.ErrAlive},
	},
	{
		"expired", func(b *book) { b.add(theID); b.end(theID, link.Expired) },
		[]error{link.ErrExpired, link.ErrExpired, link.ErrExpired, link.ErrExpired, link.ErrExpired, link.ErrExpired, nil, nil},
	},
	{
		"revoked while open", func(b *book) { b.add(theID); b.end(theID, link.Revoked) },
		[]error{link.ErrEnded, link.ErrEnded, link.ErrEnded, link.ErrEnded, link.ErrEnded, link.ErrEnded, nil, nil},
	},
	{
		"revoked from ann", func(b *book) { b.claim(b.add(theID), ann); b.end(theID, link.Revoked) },
		[]error{link.ErrEnded, link.ErrEnded, link.ErrEnded, link.ErrEnded, link.ErrEnded, link.ErrEnded, nil, nil},
	},
	{
		"finished", func(b *book) { b.claim(b.add(theID), ann); b.end(theID, link.Finished) },
		[]error{link.ErrEnded, link.ErrEnded, link.ErrEnded, link.ErrEnded, link.ErrEnded, link.ErrEnded, nil, nil},
	},
	{
		"finished and cleaned", func(b *book) { b.claim(b.add(theID), ann); b.end(theID, link.Finished); b.receipt(theID) },
		[]error{link.ErrEnded, link.ErrEnded, link.ErrEnded, link.ErrEnded, link.ErrEnded, link.ErrEnded, nil, link.ErrExists},
	},
}

func (b *book) approve(id string) {
	b.t.Helper()
	if _, err := b.Approve(id); err != nil {
		b.t.Fatal(err)
	}
}

func (b *book) receipt(id string) {
	b.t.Helper()
	if err := b.PutReceipt(id, []byte(`{"link":"`+id+`"}`)); err != nil {
		b.t.Fatal(err)
	}
}

var firstToken = hashOf("first token of " + theID)

var verbs = []struct {
	name string
	do   func(b *book) error
}{
	{"claim by ann", func(b *book) error { return claimAs(b, ann) }},
	{"claim by bob", func(b *book) error { return claimAs(b, bob) }},
	{"claim without a key", func(b *book) error { return claimAs(b, nobody) }},
	{"companion", func(b *book) error { return b.Companion(theID, hashOf("companion")) }},
	{"approve", func(b *book) error { _, err := b.Approve(theID); return err }},
	{"extend", func(b *book) error { _, err := b.Extend(theID, time.Minute); return err }},
	{"end", func(b *book) error { _, err := b.End(theID, link.Revoked); return err }},
	{"receipt", func(b *book) error { return b.PutReceipt(theID, []byte(`{"link":"x"}`)) }},
}

// claimAs claims, and holds Check to its promise to say the same beforehand.
func claimAs(b *book, g link.Guest) error {
	b.t.Helper()
	before := b.content()
	said := b.Check(firstToken, g)
	if after := b.content(); after != before {
		b.t.Errorf("Check changed the book:\n%s\nto\n%s", before, after)
	}
	_, _, err := b.Claim(firstToken, g)
	if (said == nil) != (err == nil) || said != nil && said.Error() != err.Error() {
		b.t.Errorf("Check said %v, Claim %v", said, err)
	}
	return err
}

// TestEverySituationAndVerb: the answer is the expected one; a refusal changes nothing;
// what was answered is what a restart finds; an ended link stays ended as it was.
func TestEverySituationAndVerb(t *testing.T) {
	for _, at := range situations {
		for i, verb := range verbs {
			t.Run(at.name+"/"+verb.name, func(t *testing.T) {
				t.Parallel()
				b := newBook(t)
				at.setUp(b)
				before := b.content()
				was, _ := b.Get(theID)

				err := verb.do(b)
				if !errors.Is(err, at.want[i]) {
					t.Fatalf("answer %v, want %v", err, at.want[i])
				}
				after := b.content()
				if err != nil && after != before {
					t.Errorf("a refusal changed the book:\n%s\nto\n%s", before, after)
				}
				is, _ := b.Get(theID)
				if was.State == link.Ended && (is.State != link.Ended || is.Reason != was.Reason || !is.EndedAt.Equal(was.EndedAt)) {
					t.Errorf("ended link became %v %v at %v", is.State, is.Reason, is.EndedAt)
				}
				b.reopen()
				if found := b.content(); found != after {
					t.Errorf("after a restart the book says\n%s\nbefore it\n%s", found, after)
				}
			})
		}
	}
}

// TestEndedErrorSaysWhy: the cause of a refusal carries reason and moment.
func TestEndedErrorSaysWhy(t *testing.T) {
	for _, c := range []struct {
		name   string
		setUp  func(b *book)
		reason link.Reason
		at     time.Time
	}{
		{"unclaimed, not swept", func(b *book) { b.advance(3 * time.Hour) }, link.Expired, start.Add(time.Hour)},
		{"claimed, not swept", func(b *book) { b.claim(firstToken, ann); b.advance(3 * time.Hour) }, link.Expired, start.Add(2 * time.Hour)},
		{"revoked", func(b *book) { b.advance(time.Minute); b.end(theID, link.Revoked) }, link.Revoked, start.Add(time.Minute)},
		{"finished", func(b *book) { b.claim(firstToken, ann); b.end(theID, link.Finished) }, link.Finished, start},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBook(t)
			b.add(theID)
			c.setUp(b)
			var ended *link.EndedError
			if err := b.Check(firstToken, ann); !errors.As(err, &ended) {
				t.Fatalf("Check: %v", err)
			}
			if ended.Reason != c.reason || !ended.At.Equal(c.at) {
				t.Errorf("ended %v at %v, want %v at %v", ended.Reason, ended.At, c.reason, c.at)
			}
			if got := errors.Is(ended, link.ErrExpired); got != (c.reason == link.Expired) {
				t.Errorf("is ErrExpired: %v", got)
			}
		})
	}
}
