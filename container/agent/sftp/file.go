package sftp

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
	"syscall"
)

// Open flags, draft-ietf-secsh-filexfer-02 section 6.3.
const (
	flagRead   = 0x01
	flagWrite  = 0x02
	flagAppend = 0x04
	flagCreate = 0x08
	flagTrunc  = 0x10
	flagExcl   = 0x20
)

func (s *server) open(id uint32, d *decoder) error {
	name := s.path(d.string())
	flags := d.uint32()
	at := readAttrs(d)
	if d.err != nil {
		return d.err
	}
	mode := os.FileMode(0o666)
	if at.has(attrPermissions) {
		mode = fileMode(at.mode)
	}
	// O_NONBLOCK would change what the client gets from a fifo; a guest may hang their own transfer.
	f, err := os.OpenFile(name, openFlags(flags)|syscall.O_NOCTTY, mode)
	if err != nil {
		return err
	}
	h, err := s.handles.add(&handle{file: f, name: name, appends: flags&flagAppend != 0})
	if err != nil {
		return err
	}
	s.handleReply(id, h)
	return nil
}

func openFlags(flags uint32) int {
	var o int
	switch flags & (flagRead | flagWrite) {
	case flagRead | flagWrite:
		o = os.O_RDWR
	case flagWrite:
		o = os.O_WRONLY
	}
	for _, f := range []struct {
		sftp uint32
		os   int
	}{{flagCreate, os.O_CREATE}, {flagTrunc, os.O_TRUNC}, {flagExcl, os.O_EXCL}} {
		if flags&f.sftp != 0 {
			o |= f.os
		}
	}
	return o
}

func (s *server) handleReply(id uint32, name string) {
	s.enc.begin(typeHandle, id)
	s.enc.string(name)
	s.enc.end()
}

// read reads straight into the answer.
func (s *server) read(id uint32, d *decoder) error {
	h, err := s.handles.file(d.bytes())
	offset, n := d.uint64(), d.uint32()
	if err != nil || d.err != nil {
		return errors.Join(err, d.err)
	}
	s.enc.begin(typeData, id)
	s.enc.uint32(0) // the length, once it is known
	at := len(s.enc.buf)
	want := int(min(n, maxData))
	s.enc.grow(want)
	got, err := readAt(h.file, s.enc.buf[at:at+want], int64(offset))
	if got == 0 {
		if err == nil {
			err = io.EOF
		}
		return err
	}
	s.enc.buf = s.enc.buf[:at+got]
	binary.BigEndian.PutUint32(s.enc.buf[at-4:], uint32(got))
	s.enc.end()
	return nil
}

// readAt is one pread(2): what a file on a slow medium has now is sent now. A pipe has no offsets.
func readAt(f *os.File, p []byte, offset int64) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	n, err := syscall.Pread(int(f.Fd()), p, offset)
	for errors.Is(err, syscall.EINTR) {
		n, err = syscall.Pread(int(f.Fd()), p, offset)
	}
	if errors.Is(err, syscall.ESPIPE) {
		return f.Read(p)
	}
	return max(n, 0), err
}

// grow makes room for n more bytes without adding them.
func (e *encoder) grow(n int) {
	if cap(e.buf)-len(e.buf) < n {
		bigger := make([]byte, len(e.buf), 2*cap(e.buf)+n)
		copy(bigger, e.buf)
		e.buf = bigger
	}
}

// write writes all of the client's bytes where it says, or at the end of a file that was
// opened for appending, as OpenSSH does.
func (s *server) write(d *decoder) error {
	h, err := s.handles.file(d.bytes())
	offset, data := d.uint64(), d.bytes()
	if err != nil || d.err != nil {
		return errors.Join(err, d.err)
	}
	if h.appends {
		end, err := h.file.Seek(0, io.SeekEnd)
		if err != nil {
			return err
		}
		offset = uint64(end)
	}
	_, err = h.file.WriteAt(data, int64(offset))
	if errors.Is(err, syscall.ESPIPE) {
		_, err = h.file.Write(data)
	}
	return err
}
