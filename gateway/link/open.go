package link

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// The buckets of the file.
var (
	bucketBook     = []byte("book")     // keyFormat: what kind of file this is
	bucketLinks    = []byte("links")    // id: Link as JSON
	bucketReceipts = []byte("receipts") // number, big-endian: receipt as JSON
	keyFormat      = []byte("format")
)

// format names the layout. Another layout gets another name, and old programs refuse it.
const format = "berth link book 1"

// lockWait is how long to wait for another process to let go of the file: enough for one
// that is being stopped, short enough for a person.
const lockWait = 500 * time.Millisecond

// OpenStore opens the book, or makes it where there is no file. ErrLocked if another process
// has it; ErrDamaged if the file is no book or a broken one: it is left as it is. Close
// the store after use.
func OpenStore(o Options) (*Store, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	s, err := open(o)
	if err != nil {
		return nil, fmt.Errorf("open link book %s: %w", o.Path, err)
	}
	return s, nil
}

func open(o Options) (*Store, error) {
	_, err := os.Lstat(o.Path)
	if errors.Is(err, fs.ErrNotExist) {
		err = create(o.Path)
	}
	if err != nil {
		return nil, err
	}
	s := &Store{
		now:     o.Now,
		links:   map[string]*Link{},
		grants:  map[Hash]place{},
		waiting: map[string]Guest{},
	}
	if err := s.inspect(o.Path); err != nil {
		return nil, err
	}
	if s.db, err = openFile(o.Path, false); err != nil {
		return nil, err
	}
	s.commit = s.db.Update
	// Between the inspection and this lock another berth may have written: read again.
	if err := s.load(s.db); err != nil {
		_ = s.db.Close()
		return nil, err
	}
	return s, nil
}

// create makes an empty book beside path and links it into place, so that path is never
// half a book: not after a crash, not on a full disk. It never replaces a file.
func create(path string) error {
	dir := filepath.Dir(path)
	temp, err := os.MkdirTemp(dir, ".book-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(temp) }()
	draft := filepath.Join(temp, "book")
	db, err := bbolt.Open(draft, 0o600, &bbolt.Options{Timeout: lockWait})
	if err != nil {
		return err
	}
	if err := errors.Join(db.Update(layOut), db.Close()); err != nil {
		return err
	}
	if err := os.Link(draft, path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncDir(dir)
}

// layOut makes the buckets of an empty book.
func layOut(tx *bbolt.Tx) error {
	for _, name := range [][]byte{bucketBook, bucketLinks, bucketReceipts} {
		if _, err := tx.CreateBucket(name); err != nil {
			return err
		}
	}
	return tx.Bucket(bucketBook).Put(keyFormat, []byte(format))
}

// syncDir makes a new name in a folder survive a power cut.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// inspect reads the whole book without the right to write, so that a file which is not
// ours, or is broken, is left exactly as it was found.
func (s *Store) inspect(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%w: not a regular file", ErrDamaged)
	case info.Size() == 0:
		return fmt.Errorf("%w: the file is empty", ErrDamaged)
	}
	db, err := openFile(path, true)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	return s.load(db)
}

// openFile opens the file through bbolt. bbolt panics on some broken files, with the file
// still open and locked; here that is an error like any other.
func openFile(path string, readOnly bool) (db *bbolt.DB, err error) {
	var file *os.File
	opened := false
	defer func() {
		if !opened && file != nil {
			_ = file.Close()
		}
	}()
	err = guarded(func() (err error) {
		db, err = bbolt.Open(path, 0o600, &bbolt.Options{
			Timeout:  lockWait,
			ReadOnly: readOnly,
			OpenFile: func(name string, flag int, mode os.FileMode) (*os.File, error) {
				var err error
				file, err = os.OpenFile(name, flag&^os.O_CREATE, mode)
				return file, err
			},
		})
		return err
	})
	var pathError *fs.PathError
	switch {
	case err == nil:
		opened = true
		return db, nil
	case errors.Is(err, bolterrors.ErrTimeout):
		return nil, ErrLocked
	case errors.Is(err, ErrDamaged), errors.As(err, &pathError):
		return nil, err
	}
	return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
}

// guarded turns the panics and memory faults of reading a broken mapped file (one that
// ends too early, say) into ErrDamaged.
func guarded(read func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", ErrDamaged, r)
		}
	}()
	return read()
}

// load reads every link into memory and walks every receipt, so that damage shows now.
func (s *Store) load(db *bbolt.DB) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.links)
	clear(s.grants)
	return guarded(func() error {
		return db.View(func(tx *bbolt.Tx) error {
			book, links, receipts := tx.Bucket(bucketBook), tx.Bucket(bucketLinks), tx.Bucket(bucketReceipts)
			if book == nil || links == nil || receipts == nil || string(book.Get(keyFormat)) != format {
				return fmt.Errorf("%w: not laid out as %q", ErrDamaged, format)
			}
			if err := links.ForEach(s.loadLink); err != nil {
				return err
			}
			return receipts.ForEach(func(_, text []byte) error {
				if !json.Valid(text) {
					return fmt.Errorf("%w: a receipt is unreadable", ErrDamaged)
				}
				return nil
			})
		})
	})
}

// loadLink reads one link. Callers hold mu.
func (s *Store) loadLink(id, text []byte) error {
	var l Link
	if err := json.Unmarshal(text, &l); err != nil {
		return fmt.Errorf("%w: link %q: %w", ErrDamaged, id, err)
	}
	if l.ID != string(id) || len(l.Grants) == 0 {
		return fmt.Errorf("%w: link %q does not fit its place", ErrDamaged, id)
	}
	s.show(l)
	return nil
}
