package link

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/bbolt"
)

// Add puts a new open link with its first grant into the book. ErrExists if its id or
// token is there already, ErrInvalid or ErrTooLong if it cannot be a new link.
func (s *Store) Add(l Link) error {
	s.write.Lock()
	defer s.write.Unlock()
	if err := l.fresh(s.clock()); err != nil {
		return fmt.Errorf("add link: %w", err)
	}
	if _, ok := s.Get(l.ID); ok {
		return fmt.Errorf("add link: id: %w", ErrExists)
	}
	if _, _, ok := s.ByToken(l.Grants[0].Hash); ok {
		return fmt.Errorf("add link: token: %w", ErrExists)
	}
	if l.CreatedAt.IsZero() {
		l.CreatedAt = s.clock()
	}
	l.CreatedAt, l.ClaimBy = l.CreatedAt.UTC(), l.ClaimBy.UTC()
	_, err := s.put(l, nil)
	return err
}

// Claim lets the guest g in by the token with hash h, and the first time binds the grant
// to them: one step, durable when it returns. Call it only for a guest whose key has been
// verified, or who has none. It returns the link, and whether it was this call that bound
// the grant; or ErrUnknown, an *EndedError, ErrClaimed, ErrKeyless, ErrWaiting or
// ErrDurable. A guest who was let in before is let in again without a write.
func (s *Store) Claim(h Hash, g Guest) (l Link, bound bool, err error) {
	l, n, ok := s.ByToken(h)
	if !ok {
		return Link{}, false, ErrUnknown
	}
	bind, err := l.admit(n, g, s.clock())
	switch {
	case errors.Is(err, ErrWaiting), bind:
		return s.claim(h, g)
	case err != nil:
		return Link{}, false, err
	}
	return l, false, nil
}

// claim decides once more, now that nobody else can change the link, and writes.
func (s *Store) claim(h Hash, g Guest) (Link, bool, error) {
	s.write.Lock()
	defer s.write.Unlock()
	l, n, ok := s.ByToken(h)
	if !ok {
		return Link{}, false, ErrUnknown
	}
	now := s.clock()
	bind, err := l.admit(n, g, now)
	if err != nil {
		if errors.Is(err, ErrWaiting) {
			s.wait(l.ID, g)
		}
		return Link{}, false, err
	}
	if !bind {
		return l, false, nil
	}
	l.bind(n, g, now)
	l, err = s.put(l, nil)
	return l, err == nil, err
}

// wait remembers who asked for approval. The first one stays: otherwise a stranger could
// take the place of the guest that the host is about to approve.
func (s *Store) wait(id string, g Guest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.waiting[id]; !ok {
		s.waiting[id] = g.named()
	}
}

// Companion adds a grant to a claimed link: a further token, for another device or for a
// guest without a key. ErrOpen before the claim, ErrTooMany at MaxGrants.
func (s *Store) Companion(id string, h Hash) error {
	_, err := s.change(id, func(l *Link, now time.Time) (bool, error) {
		if _, _, ok := s.ByToken(h); ok || h == (Hash{}) {
			return false, fmt.Errorf("add companion: %w", ErrExists)
		}
		return true, l.companion(h, now)
	})
	return err
}

// Approve lets a guest into an open link that needs approval: the one who waits, for whom
// it claims the link, or else the next one who comes. Approving twice, or a link that
// needs no approval, changes nothing.
func (s *Store) Approve(id string) (Link, error) {
	return s.change(id, func(l *Link, now time.Time) (bool, error) {
		if err := l.alive(now); err != nil {
			return false, err
		}
		if l.State != Open || !l.Terms.Approve || l.Approved {
			return false, nil
		}
		l.Approved = true
		if g, ok := s.Pending(id); ok {
			l.bind(0, g, now)
		}
		return true, nil
	})
}

// Extend moves the end of a claimed link, or the last moment to claim an open one, by a
// positive duration. ErrTooLong if that is more than MaxSpan from now, an *EndedError if
// the link's time was up already.
func (s *Store) Extend(id string, by time.Duration) (Link, error) {
	return s.change(id, func(l *Link, now time.Time) (bool, error) {
		return true, l.extend(by, now)
	})
}

// End ends a link for good. Ending it again changes nothing: the first reason stays.
func (s *Store) End(id string, r Reason) (Link, error) {
	switch r {
	case Expired, Revoked, Finished:
	default:
		return Link{}, fmt.Errorf("end link: %w: unknown reason", ErrInvalid)
	}
	return s.change(id, func(l *Link, now time.Time) (bool, error) {
		return l.end(r, now), nil
	})
}

// change runs one change of one link: edit gets a copy and says whether to write it.
func (s *Store) change(id string, edit func(*Link, time.Time) (bool, error)) (Link, error) {
	s.write.Lock()
	defer s.write.Unlock()
	l, ok := s.Get(id)
	if !ok {
		return Link{}, ErrUnknown
	}
	write, err := edit(&l, s.clock())
	switch {
	case err != nil:
		return Link{}, err
	case !write:
		return l, nil
	}
	return s.put(l, nil)
}

// put writes the link, and what more belongs to the same change, syncs it, and only then
// shows it to readers. Callers hold write. Memory gets what was read back from the
// written form, so that it cannot hold more than a restart would find.
func (s *Store) put(l Link, more func(*bbolt.Tx) error) (Link, error) {
	text, err := json.Marshal(l)
	if err != nil {
		return Link{}, fmt.Errorf("write link: %w: %w", ErrInvalid, err)
	}
	var kept Link
	if err := json.Unmarshal(text, &kept); err != nil {
		return Link{}, fmt.Errorf("write link: %w: %w", ErrInvalid, err)
	}
	err = s.durably(func(tx *bbolt.Tx) error {
		if err := tx.Bucket(bucketLinks).Put([]byte(kept.ID), text); err != nil || more == nil {
			return err
		}
		return more(tx)
	})
	if err != nil {
		return Link{}, err
	}
	s.mu.Lock()
	s.show(kept)
	s.mu.Unlock()
	return kept.clone(), nil
}

// show makes a link that is in the file visible to readers. Callers hold mu.
func (s *Store) show(l Link) {
	s.links[l.ID] = &l
	for n, g := range l.Grants {
		s.grants[g.Hash] = place{id: l.ID, n: n}
	}
	if l.State != Open {
		delete(s.waiting, l.ID)
	}
}

// durably runs one transaction and returns when it is on the disk, or ErrDurable with the
// file as it was. Callers hold write.
//
// Two failures leave a doubt: when the very last sync fails, the file may show the change
// although it was reported as failed; and when bbolt trips over a broken page. Then no
// further change is taken until the book is opened again, since each would make the
// doubtful one durable behind the caller's back.
func (s *Store) durably(fn func(*bbolt.Tx) error) error {
	if s.torn != nil {
		return fmt.Errorf("%w: a write failed half-way before, restart to go on: %w", ErrDurable, s.torn)
	}
	before, err := s.version()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDurable, err)
	}
	if err = guarded(func() error { return s.commit(fn) }); err == nil {
		return nil
	}
	if after, verr := s.version(); verr != nil || after != before || errors.Is(err, ErrDamaged) {
		s.torn = err
	}
	return fmt.Errorf("%w: %w", ErrDurable, err)
}

// version returns the number of the last change that the file shows.
func (s *Store) version() (int, error) {
	n := 0
	err := s.db.View(func(tx *bbolt.Tx) error {
		n = tx.ID()
		return nil
	})
	return n, err
}
