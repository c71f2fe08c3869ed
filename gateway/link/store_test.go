package link_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/berth-gpu/berth/gateway/link"
)

func TestAddRefuses(t *testing.T) {
	for _, c := range []struct {
		name string
		edit func(*link.Link)
		want error
	}{
		{"no id", func(l *link.Link) { l.ID = "" }, link.ErrInvalid},
		{"not open", func(l *link.Link) { l.State = link.Claimed }, link.ErrInvalid},
		{"no grant", func(l *link.Link) { l.Grants = nil }, link.ErrInvalid},
		{"two grants", func(l *link.Link) { l.Grants = append(l.Grants, link.Grant{Hash: hashOf("b")}) }, link.ErrInvalid},
		{"no token", func(l *link.Link) { l.Grants[0].Hash = link.Hash{} }, link.ErrInvalid},
		{"bound", func(l *link.Link) { l.Grants[0].Guest = ann }, link.ErrInvalid},
		{"no time", func(l *link.Link) { l.Terms.For = 0 }, link.ErrInvalid},
		{"no time to claim", func(l *link.Link) { l.ClaimBy = time.Time{} }, link.ErrInvalid},
		{"too long", func(l *link.Link) { l.Terms.For = link.MaxSpan + 1 }, link.ErrTooLong},
		{"too long to claim", func(l *link.Link) { l.ClaimBy = start.Add(link.MaxSpan + 1) }, link.ErrTooLong},
		{"time that JSON cannot hold", func(l *link.Link) { l.CreatedAt = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) }, link.ErrInvalid},
		{"id taken", func(l *link.Link) { l.ID = "taken" }, link.ErrExists},
		{"token taken", func(l *link.Link) { l.Grants[0].Hash = hashOf("first token of taken") }, link.ErrExists},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBook(t)
			b.add("taken")
			before := b.content()
			l := newLink(theID, b.clock())
			c.edit(&l)
			if err := b.Add(l); !errors.Is(err, c.want) {
				t.Errorf("Add: %v, want %v", err, c.want)
			}
			if after := b.content(); after != before {
				t.Errorf("refused, but the book now says %s", after)
			}
		})
	}
}

// TestTimesAreUTC: whatever zone the host's clock shows, the book is in one.
func TestTimesAreUTC(t *testing.T) {
	b := newBook(t)
	b.now = b.now.In(time.FixedZone("east", 5*3600))
	b.claim(b.add(theID), ann)
	l := b.end(theID, link.Revoked)
	for name, at := range map[string]time.Time{"created": l.CreatedAt, "claim by": l.ClaimBy, "claimed": l.ClaimedAt, "ends": l.EndsAt, "ended": l.EndedAt} {
		if at.Location() != time.UTC || at.IsZero() {
			t.Errorf("%s: %v", name, at)
		}
	}
}

func TestFind(t *testing.T) {
	b := newBook(t)
	add := func(id, name string) { b.add(id, func(l *link.Link) { l.Name = name }) }
	add("abcd2345", "demo")
	add("abce2345", "twice")
	add("abce6789", "twice")
	add("mnpq2345", "old")
	b.end("mnpq2345", link.Revoked)
	add("mnpr2345", "old")
	add("rstu2345", "gone")
	b.end("rstu2345", link.Revoked)
	add("vwxy2345", "abcd2345") // named like another's id
	add("vwxz2345", "abcd")     // named like the beginning of another's id
	add("hijk2345", "hijk")     // named like the beginning of its own

	for _, c := range []struct {
		ref, want string
		err       error
	}{
		{"demo", "abcd2345", nil},
		{"abcd2345", "abcd2345", nil},
		{"abcd23", "abcd2345", nil},
		{"abce6", "abce6789", nil},
		{"old", "mnpr2345", nil},
		{"gone", "rstu2345", nil},
		{"mnpq", "mnpq2345", nil},
		{"hijk", "hijk2345", nil},
		{"abce", "", link.ErrAmbiguous},
		{"twice", "", link.ErrAmbiguous},
		{"abcd", "", link.ErrAmbiguous},
		{"abc", "", link.ErrUnknown}, // too short a beginning
		{"nothing", "", link.ErrUnknown},
		{"", "", link.ErrUnknown},
		{"DEMO", "", link.ErrUnknown},
	} {
		l, err := b.Find(c.ref)
		if !errors.Is(err, c.err) || l.ID != c.want {
			t.Errorf("Find(%q) = %q, %v; want %q, %v", c.ref, l.ID, err, c.want, c.err)
		}
	}
	if _, err := b.Find("twice"); !strings.Contains(err.Error(), "abce2345, abce6789") {
		t.Errorf("the error does not name what matches: %v", err)
	}
}

func TestFindWithoutName(t *testing.T) {
	b := newBook(t)
	b.add(theID, func(l *link.Link) { l.Name = "" })
	if _, err := b.Find(""); !errors.Is(err, link.ErrUnknown) {
		t.Errorf("an empty word found a link without a name: %v", err)
	}
}

func TestListIsOldestFirst(t *testing.T) {
	b := newBook(t)
	if got := b.List(); got == nil || len(got) != 0 {
		t.Errorf("an empty book lists %v", got)
	}
	b.add("c")
	b.add("b")
	b.advance(-time.Hour)
	b.add("d")
	for range 2 {
		ids := ""
		for _, l := range b.List() {
			ids += l.ID
		}
		if ids != "dbc" {
			t.Errorf("order %s", ids)
		}
		b.reopen()
	}
}

// TestLinksAreCopies: whatever a caller does to a link, the book does not notice.
func TestLinksAreCopies(t *testing.T) {
	b := newBook(t)
	h := b.add(theID)
	key := []byte("ann's own slice")
	claimed := b.claim(h, link.Guest{Key: key})
	before := b.content()
	spoil := func(l link.Link) {
		l.Grants[0].Guest.Key[0] = 'X'
		l.Grants[0].Hash = link.Hash{}
		l.Terms.Mounts[0].Source = "/"
	}
	key[0] = 'X'
	spoil(claimed)
	spoil(b.get(theID))
	spoil(b.List()[0])
	byToken, _, _ := b.ByToken(h)
	spoil(byToken)
	found, err := b.Find(theID)
	if err != nil {
		t.Fatal(err)
	}
	spoil(found)
	b.advance(3 * time.Hour)
	spoil(b.Due(b.clock())[0])
	if after := b.content(); after != before {
		t.Errorf("the book says %s, before %s", after, before)
	}

	mine := newLink("mine2345", b.clock())
	if err := b.Add(mine); err != nil {
		t.Fatal(err)
	}
	mine.Terms.Mounts[0].Source = "/etc"
	if got := b.get("mine2345").Terms.Mounts[0].Source; got != "/data" {
		t.Errorf("the caller's change reached the book: %s", got)
	}
}

func TestDueAndNext(t *testing.T) {
	b := newBook(t)
	if next := b.Next(); !next.IsZero() {
		t.Errorf("an empty book is due at %v", next)
	}
	b.add("open2345")
	b.claim(b.add("used2345"), ann)
	b.add("gone2345")
	b.end("gone2345", link.Revoked)
	for _, c := range []struct {
		after time.Duration
		due   string
	}{
		{0, ""},
		{time.Hour - 1, ""},
		{time.Hour, "open2345 "},
		{2*time.Hour - 1, "open2345 "},
		{2 * time.Hour, "open2345 used2345 "},
	} {
		due := ""
		for _, l := range b.Due(start.Add(c.after)) {
			due += l.ID + " "
		}
		if due != c.due {
			t.Errorf("after %v due: %q, want %q", c.after, due, c.due)
		}
	}
	if next := b.Next(); !next.Equal(start.Add(time.Hour)) {
		t.Errorf("next %v", next)
	}
	b.end("open2345", link.Expired)
	if next := b.Next(); !next.Equal(start.Add(2 * time.Hour)) {
		t.Errorf("next %v", next)
	}
}

func TestExtend(t *testing.T) {
	b := newBook(t)
	h := b.add(theID)
	l, err := b.Extend(theID, time.Hour)
	if err != nil || !l.ClaimBy.Equal(start.Add(2*time.Hour)) || l.Terms.For != 2*time.Hour {
		t.Fatalf("open: %v until %v for %v", err, l.ClaimBy, l.Terms.For)
	}
	b.advance(90 * time.Minute)
	b.claim(h, ann)
	l, err = b.Extend(theID, time.Hour)
	if err != nil || !l.EndsAt.Equal(start.Add(90*time.Minute+3*time.Hour)) || !l.ClaimBy.Equal(start.Add(2*time.Hour)) {
		t.Fatalf("claimed: %v until %v", err, l.EndsAt)
	}
	for _, c := range []struct {
		by   time.Duration
		want error
	}{
		{0, link.ErrInvalid},
		{-time.Hour, link.ErrInvalid},
		{link.MaxSpan, link.ErrTooLong},
		{1<<63 - 1, link.ErrTooLong},
		{link.MaxSpan - 3*time.Hour, nil}, // to the limit exactly
		{1, link.ErrTooLong},
	} {
		if _, err := b.Extend(theID, c.by); !errors.Is(err, c.want) {
			t.Errorf("by %v: %v, want %v", c.by, err, c.want)
		}
	}
}

func TestEndRefusesUnknownReason(t *testing.T) {
	b := newBook(t)
	b.add(theID)
	if _, err := b.End(theID, "bored"); !errors.Is(err, link.ErrInvalid) || b.get(theID).State != link.Open {
		t.Errorf("end: %v", err)
	}
}

func TestReceipts(t *testing.T) {
	b := newBook(t)
	if r, err := b.Receipts(); err != nil || r == nil || len(r) != 0 {
		t.Fatalf("an empty book: %v %v", r, err)
	}
	for i := range 300 { // more than a byte counts to: the order is by number
		id := fmt.Sprintf("link%04d", i)
		b.add(id)
		b.end(id, link.Finished)
		b.receipt(id)
	}
	for range 2 {
		all, err := b.Receipts()
		if err != nil || len(all) != 300 {
			t.Fatalf("%d receipts, error %v", len(all), err)
		}
		for i, r := range all {
			if want := fmt.Sprintf(`{"link":"link%04d"}`, i); string(r) != want {
				t.Fatalf("receipt %d is %s", i, r)
			}
		}
		if !b.get("link0000").Cleaned {
			t.Error("not marked as cleaned")
		}
		b.reopen()
	}
	b.add(theID)
	b.end(theID, link.Revoked)
	for _, bad := range []string{"", "{", "{} {}", "nope"} {
		if err := b.PutReceipt(theID, []byte(bad)); !errors.Is(err, link.ErrInvalid) || b.get(theID).Cleaned {
			t.Errorf("receipt %q: %v", bad, err)
		}
	}
}

func TestPrune(t *testing.T) {
	b := newBook(t)
	keep := b.add("open2345")
	b.add("dirt2345") // ended, but its cleaning is not on file
	b.end("dirt2345", link.Revoked)
	gone := b.add("gone2345")
	b.claim(gone, ann)
	if err := b.Companion("gone2345", hashOf("companion")); err != nil {
		t.Fatal(err)
	}
	b.end("gone2345", link.Finished)
	b.receipt("gone2345")
	b.advance(time.Minute)
	b.add("late2345")
	b.end("late2345", link.Finished)
	b.receipt("late2345")

	if err := b.Prune(start.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		ids := ""
		for _, l := range b.List() {
			ids += l.ID + " "
		}
		if ids != "dirt2345 open2345 late2345 " {
			t.Errorf("left: %s", ids)
		}
		for _, h := range []link.Hash{gone, hashOf("companion")} {
			if err := b.Check(h, ann); !errors.Is(err, link.ErrUnknown) {
				t.Errorf("a forgotten token: %v", err)
			}
		}
		if err := b.Check(keep, ann); err != nil {
			t.Errorf("the open link: %v", err)
		}
		if r, err := b.Receipts(); err != nil || len(r) != 2 {
			t.Errorf("%d receipts, error %v", len(r), err)
		}
		b.reopen()
	}
}
