package link_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/berth-gpu/berth/gateway/link"
)

func TestOpenMakesAPrivateFile(t *testing.T) {
	b := newBook(t)
	info, err := os.Stat(b.path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, error %v", info.Mode(), err)
	}
	left, err := os.ReadDir(filepath.Dir(b.path))
	if err != nil || len(left) != 1 {
		t.Errorf("beside the book: %v, error %v", left, err)
	}
}

func TestOpenTwice(t *testing.T) {
	b := newBook(t)
	_, err := link.OpenStore(link.Options{Path: b.path})
	if !errors.Is(err, link.ErrLocked) {
		t.Fatalf("second opening: %v", err)
	}
	b.add(theID) // the first is not disturbed
	b.reopen()
	b.get(theID)
}

// TestOpenRace: of many who make the book at once one has it, and the others know why not.
func TestOpenRace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "links.db")
	stores := make([]*link.Store, 8)
	var wg sync.WaitGroup
	for i := range stores {
		wg.Go(func() {
			s, err := link.OpenStore(link.Options{Path: path})
			if err != nil && !errors.Is(err, link.ErrLocked) {
				t.Errorf("open: %v", err)
			}
			stores[i] = s
		})
	}
	wg.Wait()
	open := 0
	for _, s := range stores {
		if s != nil {
			open++
			if err := s.Add(newLink(theID, start)); err != nil {
				t.Error(err)
			}
			_ = s.Close()
		}
	}
	if open != 1 {
		t.Fatalf("%d have the book", open)
	}
	openBook(t, path).get(theID)
}

func TestOpenWithoutFolder(t *testing.T) {
	_, err := link.OpenStore(link.Options{Path: filepath.Join(t.TempDir(), "no", "links.db")})
	if !errors.Is(err, os.ErrNotExist) || errors.Is(err, link.ErrDamaged) {
		t.Errorf("open: %v", err)
	}
}

// TestOpenRefusesWhatIsNoBook: plainly, with the path, and without touching the file.
func TestOpenRefusesWhatIsNoBook(t *testing.T) {
	good := goodFile(t)
	for _, c := range []struct {
		name string
		data []byte
	}{
		{"empty", nil},
		{"text", []byte("my thesis\n")},
		{"long text", bytes.Repeat([]byte("my thesis\n"), 10000)},
		{"zeros", make([]byte, 1<<16)},
		{"half a page", good[:2048]},
		{"one page", good[:4096]},
		{"meta pages only", good[:8192]},
		{"three pages", good[:3*4096]},
		{"cut in the middle", good[:len(good)/2/4096*4096]},
		{"both meta pages gone", append(make([]byte, 8192), good[8192:]...)},
		{"all but the meta pages gone", append(bytes.Clone(good[:8192]), make([]byte, len(good)-8192)...)},
		{"somebody else's bbolt file", foreign(t, nil)},
		{"one that bbolt would write to", foreign(t, &bbolt.Options{NoFreelistSync: true})},
		{"a later layout", changed(t, good, "book", "format", "berth link book 2")},
		{"a link that is no JSON", changed(t, good, "links", theID, "{")},
		{"a link in another's place", changed(t, good, "links", "else2345", `{"id":"abcd2345","grants":[{"hash":"`+strings.Repeat("0", 64)+`"}]}`)},
		{"a link without grants", changed(t, good, "links", theID, `{"id":"abcd2345"}`)},
		{"a hash that is none", changed(t, good, "links", theID, `{"id":"abcd2345","grants":[{"hash":"00"}]}`)},
		{"a receipt that is no JSON", changed(t, good, "receipts", "x", "{")},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "links.db")
			if err := os.WriteFile(path, c.data, 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := link.OpenStore(link.Options{Path: path})
			if !errors.Is(err, link.ErrDamaged) || !strings.Contains(err.Error(), path) {
				t.Errorf("open: %v", err)
			}
			mustBe(t, path, c.data)
		})
	}
	t.Run("a folder", func(t *testing.T) {
		if _, err := link.OpenStore(link.Options{Path: t.TempDir()}); !errors.Is(err, link.ErrDamaged) {
			t.Errorf("open: %v", err)
		}
	})
}

// TestOpenBrokenBytes: a book with bytes broken at random either opens, and takes changes
// or refuses them, or is refused; it never takes the process down, and a refused one
// stays as it is.
func TestOpenBrokenBytes(t *testing.T) {
	good := goodFile(t)
	chance := rand.New(rand.NewPCG(1, 4711))
	refused := 0
	for i := range 200 {
		data := bytes.Clone(good)
		for range 1 + chance.IntN(20) {
			data[chance.IntN(len(data))] = byte(chance.Uint32())
		}
		if i%3 == 0 { // damage where the structure is: the beginning of a page
			page := chance.IntN(len(data)/4096) * 4096
			for j := range 64 {
				data[page+j] = byte(chance.Uint32())
			}
		}
		path := filepath.Join(t.TempDir(), "links.db")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := link.OpenStore(link.Options{Path: path})
		if err == nil {
			useBroken(t, s)
			continue
		}
		refused++
		if !errors.Is(err, link.ErrDamaged) {
			t.Errorf("open: %v", err)
		}
		mustBe(t, path, data)
	}
	t.Logf("%d of 200 were refused", refused)
	if refused < 30 {
		t.Errorf("only %d were refused", refused)
	}
}

// useBroken changes what can be changed in a book whose damage did not show.
func useBroken(t *testing.T, s *link.Store) {
	t.Helper()
	for i := range 20 {
		l := newLink(fmt.Sprintf("after%03d", i), start)
		l.ClaimBy = time.Now().Add(time.Hour)
		err := s.Add(l)
		if err == nil {
			_, err = s.End(l.ID, link.Revoked)
		}
		if err == nil {
			err = s.PutReceipt(l.ID, []byte("{}"))
		}
		if err != nil && !errors.Is(err, link.ErrDurable) {
			t.Errorf("a change of a broken book: %v", err)
		}
	}
	_, _ = s.Receipts()
	_ = s.Close()
}

func mustBe(t *testing.T, path string, want []byte) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("the file was changed")
	}
}

// goodFile returns the bytes of a book with some links and receipts.
func goodFile(t *testing.T) []byte {
	t.Helper()
	b := newBook(t)
	b.claim(b.add(theID), ann)
	for i := range 60 {
		id := fmt.Sprintf("more%04d", i)
		b.add(id)
		b.end(id, link.Revoked)
		b.receipt(id)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(b.path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// foreign returns the bytes of a bbolt file that is no book.
func foreign(t *testing.T, o *bbolt.Options) []byte {
	t.Helper()
	return edited(t, filepath.Join(t.TempDir(), "foreign.db"), o, func(tx *bbolt.Tx) error {
		_, err := tx.CreateBucket([]byte("photos"))
		return err
	})
}

// changed returns the book with one value replaced.
func changed(t *testing.T, book []byte, bucket, key, value string) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "changed.db")
	if err := os.WriteFile(path, book, 0o600); err != nil {
		t.Fatal(err)
	}
	return edited(t, path, nil, func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte(bucket)).Put([]byte(key), []byte(value))
	})
}

func edited(t *testing.T, path string, o *bbolt.Options, fn func(*bbolt.Tx) error) []byte {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(db.Update(fn), db.Close()); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
