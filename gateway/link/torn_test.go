package link

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"
)

var errDisk = errors.New("disk trouble")

// failing opens a book with one open link whose next writes end in errDisk: before they
// reach the file, or after.
func failing(t *testing.T, reaches bool) *Store {
	t.Helper()
	s, err := OpenStore(Options{Path: filepath.Join(t.TempDir(), "links.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	now := time.Now()
	l := Link{
		ID: "abcd2345", State: Open, ClaimBy: now.Add(time.Hour), Terms: Terms{For: time.Hour},
		Grants: []Grant{{Hash: Hash{1}}},
	}
	if err := s.Add(l); err != nil {
		t.Fatal(err)
	}
	s.commit = func(fn func(*bbolt.Tx) error) error {
		if reaches {
			return errors.Join(s.db.Update(fn), errDisk)
		}
		return s.db.Update(func(tx *bbolt.Tx) error { return errors.Join(fn(tx), errDisk) })
	}
	return s
}

// TestFailedWriteChangesNothing: every verb that writes reports ErrDurable with the cause,
// and leaves memory alone; and the book works on when the disk does.
func TestFailedWriteChangesNothing(t *testing.T) {
	s := failing(t, false)
	working := s.db.Update
	broken := s.commit

	must := func(verb string, err error) {
		t.Helper()
		if !errors.Is(err, ErrDurable) || !errors.Is(err, errDisk) {
			t.Errorf("%s: %v", verb, err)
		}
	}
	_, _, err := s.Claim(Hash{1}, Guest{})
	must("claim", err)
	_, err = s.Extend("abcd2345", time.Minute)
	must("extend", err)
	_, err = s.End("abcd2345", Revoked)
	must("end", err)
	other := Link{ID: "other", State: Open, ClaimBy: time.Now().Add(time.Hour), Terms: Terms{For: 1}, Grants: []Grant{{Hash: Hash{2}}}}
	must("add", s.Add(other))
	if l, _ := s.Get("abcd2345"); l.State != Open || len(s.List()) != 1 {
		t.Errorf("state %v, %d links", l.State, len(s.List()))
	}
	if _, _, ok := s.ByToken(Hash{2}); ok {
		t.Error("a link that is not there answers to its token")
	}

	s.commit = working
	if _, _, err := s.Claim(Hash{1}, Guest{}); err != nil {
		t.Fatal(err)
	}
	s.commit = broken
	must("companion", s.Companion("abcd2345", Hash{3}))
	s.commit = working
	if _, err := s.End("abcd2345", Finished); err != nil {
		t.Fatal(err)
	}
	s.commit = broken
	must("receipt", s.PutReceipt("abcd2345", []byte("{}")))
	if l, _ := s.Get("abcd2345"); l.Cleaned {
		t.Error("cleaned without its receipt")
	}
	s.commit = working
	if err := s.PutReceipt("abcd2345", []byte("{}")); err != nil {
		t.Fatal(err)
	}
	s.commit = broken
	must("prune", s.Prune(time.Now().Add(time.Hour)))
	if len(s.List()) != 1 {
		t.Error("forgotten in memory only")
	}
}

// TestApprovalSurvivesAFailedWrite: the guest is still waiting and can be approved again.
func TestApprovalSurvivesAFailedWrite(t *testing.T) {
	s := failing(t, false)
	broken := s.commit
	s.commit = s.db.Update
	asks := Link{ID: "asks2345", State: Open, ClaimBy: time.Now().Add(time.Hour), Terms: Terms{For: time.Hour, Approve: true}, Grants: []Grant{{Hash: Hash{2}}}}
	if err := s.Add(asks); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Claim(Hash{2}, Guest{}); !errors.Is(err, ErrWaiting) {
		t.Fatal(err)
	}
	s.commit = broken
	if _, err := s.Approve("asks2345"); !errors.Is(err, ErrDurable) {
		t.Fatalf("approve: %v", err)
	}
	s.commit = s.db.Update
	if l, err := s.Approve("asks2345"); err != nil || l.State != Claimed {
		t.Errorf("approve again: %v, %v", l.State, err)
	}
}

// TestDoubtfulWriteStopsTheBook: the failure came after the change was in the file. Memory
// keeps saying what was reported, and nothing further is written on top of the doubt.
func TestDoubtfulWriteStopsTheBook(t *testing.T) {
	s := failing(t, true)
	if _, err := s.End("abcd2345", Revoked); !errors.Is(err, ErrDurable) || !errors.Is(err, errDisk) {
		t.Fatalf("end: %v", err)
	}
	if l, _ := s.Get("abcd2345"); l.State != Open {
		t.Errorf("the end was reported as failed, the link is %v", l.State)
	}
	s.commit = s.db.Update
	_, _, err := s.Claim(Hash{1}, Guest{})
	if !errors.Is(err, ErrDurable) || !errors.Is(err, errDisk) || !strings.Contains(err.Error(), "restart") {
		t.Errorf("a claim on top of it: %v", err)
	}
	if err := s.Check(Hash{1}, Guest{}); err != nil {
		t.Errorf("reads go on: %v", err)
	}
}

// TestClosedBook: reads answer, changes fail, closing twice is nothing.
func TestClosedBook(t *testing.T) {
	s := failing(t, false)
	s.commit = s.db.Update
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, ok := s.Get("abcd2345"); !ok {
		t.Error("the link is not there")
	}
	if _, _, err := s.Claim(Hash{1}, Guest{}); !errors.Is(err, ErrDurable) {
		t.Errorf("claim: %v", err)
	}
	if _, err := s.Receipts(); err == nil {
		t.Error("receipts of a closed book")
	}
}

// TestPruneKeepsReceipts: the newest MaxReceipts stay.
func TestPruneKeepsReceipts(t *testing.T) {
	s := failing(t, false)
	s.commit = s.db.Update
	const extra = 30
	err := s.db.Update(func(tx *bbolt.Tx) error {
		for range MaxReceipts + extra {
			if err := fileReceipt(tx, []byte("{}")); err != nil {
				return err
			}
		}
		return fileReceipt(tx, []byte(`{"newest":true}`))
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time there is nothing to do
		if err := s.Prune(time.Time{}); err != nil {
			t.Fatal(err)
		}
		all, err := s.Receipts()
		if err != nil || len(all) != MaxReceipts || string(all[MaxReceipts-1]) != `{"newest":true}` {
			t.Fatalf("%d receipts, error %v", len(all), err)
		}
	}
}

// TestPanicInAWrite: bbolt panics when it trips over a broken page. That is a failed
// change like any other, and the last one.
func TestPanicInAWrite(t *testing.T) {
	s := failing(t, false)
	s.commit = func(func(*bbolt.Tx) error) error { panic("page 7 is broken") }
	if _, _, err := s.Claim(Hash{1}, Guest{}); !errors.Is(err, ErrDurable) || !errors.Is(err, ErrDamaged) {
		t.Fatalf("claim: %v", err)
	}
	s.commit = s.db.Update
	if _, _, err := s.Claim(Hash{1}, Guest{}); !errors.Is(err, ErrDurable) {
		t.Errorf("claim after it: %v", err)
	}
	if l, _ := s.Get("abcd2345"); l.State != Open {
		t.Errorf("the link is %v", l.State)
	}
}
