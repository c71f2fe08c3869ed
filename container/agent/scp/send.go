package scp

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// send is `scp -f`: it offers every path to the other side.
func (c *copier) send() error {
	if _, err := c.answer(); err != nil {
		return err
	}
	for _, p := range c.paths {
		if err := c.sendPath(p); err != nil {
			return err
		}
	}
	return nil
}

func (c *copier) sendPath(path string) error {
	if strings.ContainsRune(filepath.Base(path), '\n') {
		return c.warn(fmt.Errorf("%q: this protocol cannot carry a line end in a name; use scp without -O", path))
	}
	// O_NONBLOCK: a named pipe is refused below instead of waited for.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return c.warn(err)
	}
	defer func() { _ = f.Close() }()
	st, err := f.Stat()
	switch {
	case err != nil:
		return c.warn(err)
	case st.IsDir() && c.recursive:
		return c.sendDir(path, f, st)
	case !st.Mode().IsRegular():
		return c.warn(fmt.Errorf("%s: not a regular file", path))
	}
	if ok, err := c.sendTimes(st); err != nil || !ok {
		return err
	}
	if _, err := fmt.Fprintf(c.out, "C%04o %d %s\n", st.Mode().Perm(), st.Size(), filepath.Base(path)); err != nil {
		return err
	}
	if ok, err := c.answer(); err != nil || !ok {
		return err
	}
	return c.sendBytes(f, st.Size())
}

// sendBytes sends exactly what was announced. A file that shrank is filled up, so that the
// protocol stays in step, and reported.
func (c *copier) sendBytes(f io.Reader, size int64) error {
	n, err := io.CopyN(c.out, f, size)
	var failed error
	if err != nil {
		failed = fmt.Errorf("the file changed while it was sent: %w", err)
		if _, err := io.CopyN(c.out, zeros{}, size-n); err != nil {
			return errors.Join(failed, err)
		}
	}
	if failed != nil {
		if err := c.warn(failed); err != nil {
			return err
		}
	} else if err := c.accept(); err != nil {
		return err
	}
	_, err = c.answer()
	return err
}

type zeros struct{}

// Read fills p with zero bytes.
func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func (c *copier) sendTimes(st os.FileInfo) (bool, error) {
	if !c.keep {
		return true, nil
	}
	accessed := st.ModTime()
	if sys, ok := st.Sys().(*syscall.Stat_t); ok {
		accessed = timeOf(sys.Atim)
	}
	if _, err := fmt.Fprintf(c.out, "T%d 0 %d 0\n", st.ModTime().Unix(), accessed.Unix()); err != nil {
		return false, err
	}
	return c.answer()
}

func (c *copier) sendDir(path string, dir *os.File, st os.FileInfo) error {
	if ok, err := c.sendTimes(st); err != nil || !ok {
		return err
	}
	if _, err := fmt.Fprintf(c.out, "D%04o 0 %s\n", st.Mode().Perm(), base(path)); err != nil {
		return err
	}
	if ok, err := c.answer(); err != nil || !ok {
		return err
	}
	names, err := dir.Readdirnames(-1)
	if err != nil {
		if err := c.warn(err); err != nil {
			return err
		}
	}
	for _, name := range names {
		if err := c.sendPath(filepath.Join(path, name)); err != nil {
			return err
		}
	}
	if _, err := c.out.WriteString("E\n"); err != nil {
		return err
	}
	_, err = c.answer()
	return err
}

// base names a directory as the other side should; "." and "/" have no name of their own.
func base(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	if b := filepath.Base(path); b != "/" {
		return b
	}
	return "root"
}

func timeOf(ts syscall.Timespec) time.Time { return time.Unix(ts.Sec, ts.Nsec) }
