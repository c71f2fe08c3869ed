package link

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"go.etcd.io/bbolt"
)

// Options say where the book is and what time it is.
type Options struct {
	Path string           // the file; its folder must exist
	Now  func() time.Time // if nil, time.Now
}

// Store is the book of links: one bbolt file, all of whose links are in memory too. Reads
// never touch the disk. A change is written and synced first and seen by readers after, so
// nobody can act on what a crash would take back. Links that come out are copies.
//
// Lock order: write, then mu.
type Store struct {
	db     *bbolt.DB
	commit func(func(*bbolt.Tx) error) error // db.Update; tests put a failing disk here
	now    func() time.Time

	// write puts changes into one order: it is held from the decision to the moment
	// that readers see the result, and is the one lock held during disk I/O. Readers,
	// and guests who are let in or refused without a change, do not take it.
	write sync.Mutex
	torn  error // guarded by write: why the file may differ from memory; no change after that

	// mu guards what follows and is never held during I/O.
	mu      sync.RWMutex
	links   map[string]*Link // replaced as a whole, never changed in place
	grants  map[Hash]place
	waiting map[string]Guest // by link: who asked first and waits for approval
}

// place is where a grant is: the n-th of a link.
type place struct {
	id string
	n  int
}

// Close releases the file, after a change that is being written. Reads keep answering
// from memory; changes fail with ErrDurable.
func (s *Store) Close() error {
	s.write.Lock()
	defer s.write.Unlock()
	if err := s.db.Close(); err != nil {
		return fmt.Errorf("close link book: %w", err)
	}
	return nil
}

// Get returns the link with this id.
func (s *Store) Get(id string) (Link, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	l, ok := s.links[id]
	if !ok {
		return Link{}, false
	}
	return l.clone(), true
}

// List returns all links in the book, oldest first; ended ones too until Prune.
func (s *Store) List() []Link {
	return s.pick(func(*Link) bool { return true })
}

// pick returns copies of the links that match, oldest first.
func (s *Store) pick(match func(*Link) bool) []Link {
	found := []Link{}
	s.mu.RLock()
	for _, l := range s.links {
		if match(l) {
			found = append(found, l.clone())
		}
	}
	s.mu.RUnlock()
	slices.SortFunc(found, func(a, b Link) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), strings.Compare(a.ID, b.ID))
	})
	return found
}

// minPrefix is how much of an id Find wants to see.
const minPrefix = 4

// Find returns the one link that ref means: its id, the beginning of its id (4 characters
// or more), or its name, where a link that has ended counts only if no other has that
// name. Otherwise ErrUnknown or ErrAmbiguous, which names the ids that match.
func (s *Store) Find(ref string) (Link, error) {
	if ref == "" {
		return Link{}, ErrUnknown
	}
	if l, ok := s.Get(ref); ok {
		return l, nil
	}
	named := s.pick(func(l *Link) bool { return l.Name == ref && l.State != Ended })
	if len(named) == 0 {
		named = s.pick(func(l *Link) bool { return l.Name == ref })
	}
	found := map[string]Link{}
	for _, l := range named {
		found[l.ID] = l
	}
	if len(ref) >= minPrefix {
		for _, l := range s.pick(func(l *Link) bool { return strings.HasPrefix(l.ID, ref) }) {
			found[l.ID] = l
		}
	}
	ids := slices.Sorted(maps.Keys(found))
	switch len(ids) {
	case 0:
		return Link{}, ErrUnknown
	case 1:
		return found[ids[0]], nil
	}
	return Link{}, fmt.Errorf("%w: %s", ErrAmbiguous, strings.Join(ids, ", "))
}

// ByToken returns the link that has a grant with this hash, and which of its grants it is.
func (s *Store) ByToken(h Hash) (Link, int, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	at, ok := s.grants[h]
	if !ok {
		return Link{}, 0, false
	}
	return s.links[at.id].clone(), at.n, true
}

// Check says what Claim would answer, and changes nothing: a guest who has only offered
// a key can be told that it is useless without anything being burnt.
func (s *Store) Check(h Hash, g Guest) error {
	l, n, ok := s.ByToken(h)
	if !ok {
		return ErrUnknown
	}
	_, err := l.admit(n, g, s.clock())
	return err
}

// Pending returns the guest who was the first to ask for a link that needs approval. It
// is kept in memory only: after a restart the guest has to ask again.
func (s *Store) Pending(id string) (Guest, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	g, ok := s.waiting[id]
	return g.named(), ok
}

// Withdraw forgets a guest who waits for approval, for when they hang up. Another guest
// who waits in the same place stays.
func (s *Store) Withdraw(id string, g Guest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if held, ok := s.waiting[id]; ok && held.same(g) {
		delete(s.waiting, id)
	}
}

// Due returns the links whose time is up at now but which nobody has ended yet, oldest first.
func (s *Store) Due(now time.Time) []Link {
	return s.pick(func(l *Link) bool {
		var ended *EndedError
		return l.State != Ended && errors.As(l.alive(now), &ended)
	})
}

// Next returns when the next link is due, which may be in the past, and the zero time if
// every link has ended.
func (s *Store) Next() time.Time {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var next time.Time
	for _, l := range s.links {
		if due := l.Deadline(); !due.IsZero() && (next.IsZero() || due.Before(next)) {
			next = due
		}
	}
	return next
}

// clock returns the time in UTC, which also drops the monotonic reading: the file cannot
// hold that one, and it stands still while the host sleeps.
func (s *Store) clock() time.Time { return s.now().UTC() }
