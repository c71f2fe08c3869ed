package link

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"time"

	"go.etcd.io/bbolt"
)

// MaxReceipts is how many receipts Prune keeps.
const MaxReceipts = 1000

// PutReceipt files the receipt (one JSON value) of a link that has ended and marks the
// link as cleaned, both or neither. ErrAlive if the link has not ended, ErrExists if it
// has its receipt.
func (s *Store) PutReceipt(id string, data []byte) error {
	var text bytes.Buffer
	if err := json.Compact(&text, data); err != nil {
		return fmt.Errorf("file receipt: %w: %w", ErrInvalid, err)
	}
	s.write.Lock()
	defer s.write.Unlock()
	l, ok := s.Get(id)
	switch {
	case !ok:
		return ErrUnknown
	case l.State != Ended:
		return fmt.Errorf("file receipt: %w", ErrAlive)
	case l.Cleaned:
		return fmt.Errorf("file receipt: %w", ErrExists)
	}
	l.Cleaned = true
	_, err := s.put(l, func(tx *bbolt.Tx) error { return fileReceipt(tx, text.Bytes()) })
	return err
}

// fileReceipt gives the receipt the next number; big-endian, so that keys sort by it.
func fileReceipt(tx *bbolt.Tx, text []byte) error {
	b := tx.Bucket(bucketReceipts)
	n, err := b.NextSequence()
	if err != nil {
		return err
	}
	return b.Put(binary.BigEndian.AppendUint64(nil, n), text)
}

// Receipts returns what PutReceipt filed, oldest first. They are read from the file.
func (s *Store) Receipts() ([]json.RawMessage, error) {
	all := []json.RawMessage{}
	err := guarded(func() error {
		return s.db.View(func(tx *bbolt.Tx) error {
			return tx.Bucket(bucketReceipts).ForEach(func(_, text []byte) error {
				all = append(all, bytes.Clone(text))
				return nil
			})
		})
	})
	if err != nil {
		return nil, fmt.Errorf("read receipts: %w", err)
	}
	return all, nil
}

// Prune forgets links that ended before that time and were cleaned, and the oldest
// receipts beyond MaxReceipts. The tokens of forgotten links are unknown from then on.
func (s *Store) Prune(before time.Time) error {
	s.write.Lock()
	defer s.write.Unlock()
	gone := s.pick(func(l *Link) bool {
		return l.State == Ended && l.Cleaned && l.EndedAt.Before(before)
	})
	if len(gone) == 0 && !s.tooManyReceipts() {
		return nil
	}
	err := s.durably(func(tx *bbolt.Tx) error {
		for _, l := range gone {
			if err := tx.Bucket(bucketLinks).Delete([]byte(l.ID)); err != nil {
				return err
			}
		}
		return dropOldest(tx.Bucket(bucketReceipts), MaxReceipts)
	})
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range gone {
		delete(s.links, l.ID)
		for _, g := range l.Grants {
			delete(s.grants, g.Hash)
		}
	}
	return nil
}

// tooManyReceipts spares Prune a write when there is nothing to forget.
func (s *Store) tooManyReceipts() bool {
	n := 0
	err := s.db.View(func(tx *bbolt.Tx) error {
		n = count(tx.Bucket(bucketReceipts))
		return nil
	})
	return err == nil && n > MaxReceipts
}

// count counts the keys as this transaction sees them; a bucket's Stats leave out what
// the transaction itself has changed.
func count(b *bbolt.Bucket) int {
	n := 0
	c := b.Cursor()
	for k, _ := c.First(); k != nil; k, _ = c.Next() {
		n++
	}
	return n
}

// dropOldest deletes the first keys until keep are left. The keys are taken first: a
// bbolt cursor must not be moved across deletes.
func dropOldest(b *bbolt.Bucket, keep int) error {
	var old [][]byte
	c := b.Cursor()
	k, _ := c.First()
	for n := count(b); n > keep; n-- {
		old = append(old, bytes.Clone(k))
		k, _ = c.Next()
	}
	for _, k := range old {
		if err := b.Delete(k); err != nil {
			return err
		}
	}
	return nil
}
