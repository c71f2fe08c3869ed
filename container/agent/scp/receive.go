package scp

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// entry is one control line of the sender.
type entry struct {
	kind byte // C a file, D a directory, E its end, T times
	mode os.FileMode
	size int64
	name string
	at   *times
}

// times are a file's own, kept with -p.
type times struct{ modified, accessed time.Time }

// receive is `scp -t`: it takes what comes into the target.
func (c *copier) receive() error {
	target := c.paths[0]
	if target == "" {
		target = "."
	}
	st, err := os.Stat(target)
	isDir := err == nil && st.IsDir()
	if c.intoDir && !isDir {
		return c.warn(fmt.Errorf("%s: not a directory", target))
	}
	if err := c.accept(); err != nil {
		return err
	}
	return c.receiveInto(target, isDir, 0)
}

// maxDepth bounds nesting; each level is a directory that is open to the sender.
const maxDepth = 200

// receiveInto takes entries until the directory, or everything, ends.
func (c *copier) receiveInto(target string, isDir bool, depth int) error {
	var at *times
	for {
		e, err := c.next()
		if errors.Is(err, io.EOF) && depth == 0 {
			return nil
		}
		if err != nil {
			return err
		}
		switch e.kind {
		case 'T':
			at = e.at
			err = c.accept()
		case 'E':
			if depth == 0 {
				return errors.New("protocol error: unexpected end of a directory")
			}
			return c.accept()
		case 'C':
			e.at = at
			at = nil
			err = c.receiveFile(join(target, isDir, e.name), e)
		case 'D':
			e.at = at
			at = nil
			err = c.receiveDir(join(target, isDir, e.name), e, depth)
		}
		if err != nil {
			return err
		}
	}
}

func join(target string, isDir bool, name string) string {
	if isDir {
		return filepath.Join(target, name)
	}
	return target
}

// next reads one control line. What the sender could not copy is only passed on.
func (c *copier) next() (entry, error) {
	for {
		b, err := c.in.ReadByte()
		if err != nil {
			return entry{}, err
		}
		text, err := c.line()
		if err != nil {
			return entry{}, err
		}
		switch b {
		case warning:
			c.failed = true
		case fatal:
			c.failed = true
			return entry{}, errPeer
		default:
			return parseEntry(b, text)
		}
	}
}

func parseEntry(kind byte, text string) (entry, error) {
	bad := fmt.Errorf("protocol error: %q", string(kind)+text)
	switch kind {
	case 'E':
		return entry{kind: 'E'}, nil
	case 'T':
		at, err := parseTimes(text)
		if err != nil {
			return entry{}, bad
		}
		return entry{kind: 'T', at: at}, nil
	case 'C', 'D':
	default:
		return entry{}, bad
	}
	parts := strings.SplitN(text, " ", 3)
	if len(parts) != 3 {
		return entry{}, bad
	}
	mode, err := strconv.ParseUint(parts[0], 8, 16)
	if err != nil || len(parts[0]) != 4 {
		return entry{}, bad
	}
	size, err := strconv.ParseInt(parts[1], 10, 64)
	if err != nil || size < 0 {
		return entry{}, bad
	}
	name := parts[2]
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
		return entry{}, fmt.Errorf("unexpected file name %q", name)
	}
	return entry{kind: kind, mode: os.FileMode(mode & 0o777), size: size, name: name}, nil
}

// parseTimes reads "mtime 0 atime 0", in seconds and microseconds.
func parseTimes(text string) (*times, error) {
	var n [4]int64
	fields := strings.Fields(text)
	if len(fields) != len(n) {
		return nil, errors.New("four numbers are wanted")
	}
	for i, f := range fields {
		v, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return nil, err
		}
		n[i] = v
	}
	return &times{modified: time.Unix(n[0], n[1]*1000), accessed: time.Unix(n[2], n[3]*1000)}, nil
}

// receiveFile writes one file. What cannot be written is read all the same: the next file
// comes after it.
func (c *copier) receiveFile(path string, e entry) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, e.mode|0o200)
	if err != nil {
		return c.warn(err) // the sender skips the bytes of a file that was refused
	}
	if err := c.accept(); err != nil {
		_ = f.Close()
		return err
	}
	n, werr := io.Copy(f, io.LimitReader(c.in, e.size))
	if werr != nil {
		if _, err := io.CopyN(io.Discard, c.in, e.size-n); err != nil {
			_ = f.Close()
			return err
		}
	} else if n < e.size {
		_ = f.Close()
		return io.ErrUnexpectedEOF
	}
	werr = errors.Join(werr, finish(f, e), f.Close())
	if e.at != nil && werr == nil {
		werr = os.Chtimes(path, e.at.accessed, e.at.modified)
	}
	if ok, err := c.answer(); err != nil || !ok {
		return err
	}
	if werr != nil {
		return c.warn(werr)
	}
	return c.accept()
}

// finish cuts an older, longer file and sets the mode that was asked for.
func finish(f *os.File, e entry) error {
	st, err := f.Stat()
	if err != nil {
		return err
	}
	if !st.Mode().IsRegular() {
		return nil
	}
	return errors.Join(f.Truncate(e.size), f.Chmod(e.mode))
}

func (c *copier) receiveDir(path string, e entry, depth int) error {
	if !c.recursive || depth >= maxDepth {
		return errors.New("protocol error: unexpected directory")
	}
	err := os.Mkdir(path, e.mode|0o700)
	if errors.Is(err, os.ErrExist) {
		if st, serr := os.Stat(path); serr == nil && st.IsDir() {
			err = nil
		}
	}
	if err != nil {
		return c.warn(err)
	}
	if err := c.accept(); err != nil {
		return err
	}
	if err := c.receiveInto(path, true, depth+1); err != nil {
		return err
	}
	err = os.Chmod(path, e.mode)
	if e.at != nil {
		err = errors.Join(err, os.Chtimes(path, e.at.accessed, e.at.modified))
	}
	if err != nil {
		c.failed = true
		_, _ = fmt.Fprintln(c.err, "scp:", err)
	}
	return nil
}
