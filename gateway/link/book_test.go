package link_test

import (
	"crypto/sha256"
	"encoding/json"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/berth-gpu/berth/gateway/link"
)

// start is where the clocks of these tests begin.
var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// Three guests: two with a key, one without.
var (
	ann    = link.Guest{Key: []byte("wire form of ann's key"), Fingerprint: "SHA256:ann"}
	bob    = link.Guest{Key: []byte("wire form of bob's key"), Fingerprint: "SHA256:bob"}
	nobody = link.Guest{}
)

// book is a store on a clock that the test moves.
type book struct {
	*link.Store
	t    *testing.T
	path string

	mu  sync.Mutex
	now time.Time
}

func newBook(t *testing.T) *book {
	t.Helper()
	return openBook(t, filepath.Join(t.TempDir(), "links.db"))
}

func openBook(t *testing.T, path string) *book {
	t.Helper()
	b := &book{t: t, path: path, now: start}
	b.open()
	t.Cleanup(func() { _ = b.Close() })
	return b
}

func (b *book) open() {
	b.t.Helper()
	s, err := link.OpenStore(link.Options{Path: b.path, Now: b.clock})
	if err != nil {
		b.t.Fatal(err)
	}
	b.Store = s
}

// reopen is what a restart of the gateway does to the book.
func (b *book) reopen() {
	b.t.Helper()
	if err := b.Close(); err != nil {
		b.t.Fatal(err)
	}
	b.open()
}

func (b *book) clock() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.now
}

func (b *book) advance(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now = b.now.Add(d)
}

// add puts an open link into the book: an hour to claim it, two from the claim.
func (b *book) add(id string, edit ...func(*link.Link)) link.Hash {
	b.t.Helper()
	l := newLink(id, b.clock())
	for _, e := range edit {
		e(&l)
	}
	if err := b.Add(l); err != nil {
		b.t.Fatal(err)
	}
	return l.Grants[0].Hash
}

func newLink(id string, now time.Time) link.Link {
	return link.Link{
		ID:    id,
		Name:  "name-" + id,
		State: link.Open,
		Terms: link.Terms{
			Image: "debian", GPU: "none", For: 2 * time.Hour, Sessions: 8, Network: "internet",
			Mounts: []link.Mount{{Source: "/data", Target: "/data"}},
		},
		Grants:    []link.Grant{{Hash: hashOf("first token of " + id)}},
		CreatedAt: now,
		ClaimBy:   now.Add(time.Hour),
	}
}

func hashOf(text string) link.Hash { return sha256.Sum256([]byte(text)) }

// get returns a link that must be there.
func (b *book) get(id string) link.Link {
	b.t.Helper()
	l, ok := b.Get(id)
	if !ok {
		b.t.Fatalf("link %s is not in the book", id)
	}
	return l
}

// claim claims and must succeed.
func (b *book) claim(h link.Hash, g link.Guest) link.Link {
	b.t.Helper()
	l, _, err := b.Claim(h, g)
	if err != nil {
		b.t.Fatal(err)
	}
	return l
}

// end ends a link and must succeed.
func (b *book) end(id string, r link.Reason) link.Link {
	b.t.Helper()
	l, err := b.End(id, r)
	if err != nil {
		b.t.Fatal(err)
	}
	return l
}

// content is all that the book says, in a form that can be compared.
func (b *book) content() string {
	b.t.Helper()
	receipts, err := b.Receipts()
	if err != nil {
		b.t.Fatal(err)
	}
	text, err := json.MarshalIndent(map[string]any{"links": b.List(), "receipts": receipts}, "", " ")
	if err != nil {
		b.t.Fatal(err)
	}
	return string(text)
}

func requireApproval(l *link.Link) { l.Terms.Approve = true }
