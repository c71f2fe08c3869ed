package sftp

import (
	"errors"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Attribute flags, draft-ietf-secsh-filexfer-02 section 5.
const (
	attrSize        = 0x00000001
	attrOwner       = 0x00000002
	attrPermissions = 0x00000004
	attrTimes       = 0x00000008
	attrExtended    = 0x80000000
)

// attrs are a file's attributes as they travel. Times are seconds since 1970, unsigned.
type attrs struct {
	flags              uint32
	size               uint64
	uid, gid           uint32
	mode               uint32
	accessed, modified uint32
}

func (a attrs) has(flag uint32) bool { return a.flags&flag != 0 }

func readAttrs(d *decoder) attrs {
	a := attrs{flags: d.uint32()}
	if a.has(attrSize) {
		a.size = d.uint64()
	}
	if a.has(attrOwner) {
		a.uid, a.gid = d.uint32(), d.uint32()
	}
	if a.has(attrPermissions) {
		a.mode = d.uint32()
	}
	if a.has(attrTimes) {
		a.accessed, a.modified = d.uint32(), d.uint32()
	}
	if a.has(attrExtended) {
		for n := d.uint32(); n > 0 && d.err == nil; n-- {
			d.bytes()
			d.bytes()
		}
	}
	return a
}

func (e *encoder) attrs(st *unix.Stat_t) {
	e.uint32(attrSize | attrOwner | attrPermissions | attrTimes)
	e.uint64(uint64(st.Size))
	e.uint32(st.Uid)
	e.uint32(st.Gid)
	e.uint32(st.Mode)
	e.uint32(uint32(st.Atim.Sec))
	e.uint32(uint32(st.Mtim.Sec))
}

// fileMode turns the permissions of the protocol, set-id bits included, into Go's.
func fileMode(mode uint32) os.FileMode {
	m := os.FileMode(mode & 0o777)
	if mode&unix.S_ISUID != 0 {
		m |= os.ModeSetuid
	}
	if mode&unix.S_ISGID != 0 {
		m |= os.ModeSetgid
	}
	if mode&unix.S_ISVTX != 0 {
		m |= os.ModeSticky
	}
	return m
}

// attributes answers the requests that read or set a file's attributes.
func (s *server) attributes(kind byte, id uint32, d *decoder) error {
	var st unix.Stat_t
	var err error
	switch kind {
	case typeStat:
		err = unix.Stat(s.path(d.string()), &st)
	case typeLstat:
		err = unix.Lstat(s.path(d.string()), &st)
	case typeSetstat:
		name, a := s.path(d.string()), readAttrs(d)
		if d.err != nil {
			return d.err
		}
		return ok(setPath(name, a))
	case typeFstat, typeFsetstat:
		h, herr := s.handles.any(d.bytes())
		if herr != nil {
			return herr
		}
		if kind == typeFsetstat {
			a := readAttrs(d)
			if d.err != nil {
				return d.err
			}
			return ok(setFile(h.file, a))
		}
		err = unix.Fstat(int(h.file.Fd()), &st)
	}
	if err != nil || d.err != nil {
		return errors.Join(err, d.err)
	}
	s.enc.begin(typeAttrs, id)
	s.enc.attrs(&st)
	s.enc.end()
	return nil
}

// setPath sets what a names, following symbolic links. As in OpenSSH's server every part is
// tried, and the last failure is the answer.
func setPath(name string, a attrs) error {
	var err error
	keep := func(e error) {
		if e != nil {
			err = e
		}
	}
	if a.has(attrSize) {
		keep(os.Truncate(name, int64(a.size)))
	}
	if a.has(attrPermissions) {
		keep(os.Chmod(name, fileMode(a.mode)))
	}
	if a.has(attrTimes) {
		keep(os.Chtimes(name, seconds(a.accessed), seconds(a.modified)))
	}
	if a.has(attrOwner) {
		keep(os.Chown(name, int(a.uid), int(a.gid)))
	}
	return err
}

func setFile(f *os.File, a attrs) error {
	var err error
	keep := func(e error) {
		if e != nil {
			err = e
		}
	}
	if a.has(attrSize) {
		keep(f.Truncate(int64(a.size)))
	}
	if a.has(attrPermissions) {
		keep(f.Chmod(fileMode(a.mode)))
	}
	if a.has(attrTimes) {
		keep(unix.Futimes(int(f.Fd()), []unix.Timeval{{Sec: int64(a.accessed)}, {Sec: int64(a.modified)}}))
	}
	if a.has(attrOwner) {
		keep(f.Chown(int(a.uid), int(a.gid)))
	}
	return err
}

// setLink is setPath on a symbolic link itself, lsetstat@openssh.com.
func setLink(name string, a attrs) error {
	var err error
	keep := func(e error) {
		if e != nil {
			err = e
		}
	}
	if a.has(attrSize) {
		keep(syscall.EINVAL) // a link has no size to set
	}
	if a.has(attrPermissions) {
		keep(unix.Fchmodat(unix.AT_FDCWD, name, a.mode&0o7777, unix.AT_SYMLINK_NOFOLLOW))
	}
	if a.has(attrTimes) {
		times := []unix.Timespec{{Sec: int64(a.accessed)}, {Sec: int64(a.modified)}}
		keep(unix.UtimesNanoAt(unix.AT_FDCWD, name, times, unix.AT_SYMLINK_NOFOLLOW))
	}
	if a.has(attrOwner) {
		keep(os.Lchown(name, int(a.uid), int(a.gid)))
	}
	return err
}

func seconds(s uint32) time.Time { return time.Unix(int64(s), 0) }
