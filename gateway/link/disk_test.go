package link_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/berth-gpu/berth/gateway/link"
)

// smallDisk mounts a file system of this many bytes. That needs root; without it the test
// is skipped, unless REQUIRE lists root.
func smallDisk(t *testing.T, size int) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", size)); err != nil {
		if slices.Contains(strings.Split(os.Getenv("REQUIRE"), ","), "root") {
			t.Fatalf("cannot mount a small disk: %v", err)
		}
		t.Skipf("cannot mount a small disk (needs root): %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// fill takes all the space that is left but spare bytes, and returns what frees it.
func fill(t *testing.T, dir string, spare int) (free func()) {
	t.Helper()
	path := filepath.Join(dir, "filler")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	page := make([]byte, 4096)
	size := int64(0)
	for err == nil {
		_, err = f.Write(page)
		size += int64(len(page))
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	if err := f.Truncate(max(0, size-int64(len(page))-int64(spare))); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFullDisk: with more and more space left, so that the disk is full at every moment
// of a write in turn, a change that fails has not happened, in memory and on file; and
// once there is space the same change works.
func TestFullDisk(t *testing.T) {
	for spare := 0; spare <= 8*4096; spare += 4096 {
		dir := smallDisk(t, 1<<20)
		b := openBook(t, filepath.Join(dir, "links.db"))
		open := b.add("open2345")
		ending := b.add("ends2345")
		b.claim(ending, ann)
		b.claim(b.add("used2345"), ann)
		free := fill(t, dir, spare)

		var full error
		for i := 0; full == nil && i < 200; i++ { // until the file has to grow
			before := b.content()
			full = b.Add(newLink(fmt.Sprintf("more%04d", i), b.clock()))
			if full != nil && b.content() != before {
				t.Fatalf("spare %d: the change failed, and happened", spare)
			}
		}
		if !errors.Is(full, link.ErrDurable) || !errors.Is(full, syscall.ENOSPC) {
			t.Fatalf("spare %d: %v", spare, full)
		}
		for name, verb := range map[string]func() error{
			"claim":     func() error { _, _, err := b.Claim(open, bob); return err },
			"end":       func() error { _, err := b.End("ends2345", link.Revoked); return err },
			"companion": func() error { return b.Companion("used2345", hashOf("companion")) },
		} {
			before := b.content()
			err := verb()
			if err != nil && (!errors.Is(err, link.ErrDurable) || b.content() != before) {
				t.Errorf("spare %d: %s: %v", spare, name, err)
			}
		}
		before := b.content()
		copied := openBook(t, copyOf(t, b.path))
		if onFile := copied.content(); onFile != before {
			t.Errorf("spare %d: memory says\n%s\nthe file says\n%s", spare, before, onFile)
		}

		free()
		if _, _, err := b.Claim(open, bob); err != nil {
			t.Errorf("spare %d: with space again: %v", spare, err)
		}
		if err := b.Add(newLink("last2345", b.clock())); err != nil {
			t.Errorf("spare %d: with space again: %v", spare, err)
		}
		before = b.content()
		b.reopen()
		if after := b.content(); after != before {
			t.Errorf("spare %d: after a restart\n%s\nbefore\n%s", spare, after, before)
		}
	}
}

// copyOf copies the file as it is now, elsewhere.
func copyOf(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), "copy.db")
	if err := os.WriteFile(to, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return to
}

// TestFullDiskAtFirstStart: a book that could not be made leaves nothing behind, and the
// next start, with space, makes it.
func TestFullDiskAtFirstStart(t *testing.T) {
	for spare := 0; spare <= 6*4096; spare += 4096 {
		dir := smallDisk(t, 1<<20)
		free := fill(t, dir, spare)
		path := filepath.Join(dir, "links.db")
		if s, err := link.OpenStore(link.Options{Path: path}); err == nil {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		} else if !errors.Is(err, syscall.ENOSPC) || errors.Is(err, link.ErrDamaged) {
			t.Errorf("spare %d: %v", spare, err)
		}
		free()
		left, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range left {
			if e.Name() != "links.db" {
				t.Errorf("spare %d: %s was left behind", spare, e.Name())
			}
		}
		openBook(t, path).add(theID)
	}
}
