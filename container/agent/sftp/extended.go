package sftp

import (
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// extensions are what we offer, with their versions; each is described in OpenSSH's PROTOCOL
// file, section 4.
const extensions = `posix-rename@openssh.com=1 statvfs@openssh.com=2 fstatvfs@openssh.com=2 hardlink@openssh.com=1
	fsync@openssh.com=1 lsetstat@openssh.com=1 limits@openssh.com=1 expand-path@openssh.com=1 copy-data=1
	home-directory=1 users-groups-by-id@openssh.com=1`

func (s *server) extended(id uint32, d *decoder) error {
	switch d.string() {
	case "posix-rename@openssh.com":
		from, to := s.path(d.string()), s.path(d.string())
		return s.then(d, func() error { return ok(unix.Rename(from, to)) })
	case "hardlink@openssh.com":
		from, to := s.path(d.string()), s.path(d.string())
		return s.then(d, func() error { return ok(unix.Link(from, to)) })
	case "lsetstat@openssh.com":
		name, a := s.path(d.string()), readAttrs(d)
		return s.then(d, func() error { return ok(setLink(name, a)) })
	case "fsync@openssh.com":
		h, err := s.handles.file(d.bytes())
		if err != nil {
			return err
		}
		return ok(h.file.Sync())
	case "statvfs@openssh.com":
		var st unix.Statfs_t
		err := unix.Statfs(s.path(d.string()), &st)
		return s.statvfs(id, &st, errors.Join(err, d.err))
	case "fstatvfs@openssh.com":
		h, err := s.handles.any(d.bytes())
		if err != nil {
			return err
		}
		var st unix.Statfs_t
		return s.statvfs(id, &st, unix.Fstatfs(int(h.file.Fd()), &st))
	case "limits@openssh.com":
		s.limits(id)
		return nil
	case "expand-path@openssh.com":
		return s.expand(id, d.string())
	case "home-directory":
		home, err := homeOf(d.string())
		return s.nameReply(id, home, err)
	case "copy-data":
		return s.copyData(d)
	case "users-groups-by-id@openssh.com":
		return s.usersGroups(id, d)
	}
	return errUnsupported
}

// then acts only if the whole request was there.
func (s *server) then(d *decoder, act func() error) error {
	if d.err != nil {
		return d.err
	}
	return act()
}

func (s *server) statvfs(id uint32, st *unix.Statfs_t, err error) error {
	if err != nil {
		return err
	}
	flags := uint64(0)
	if st.Flags&unix.ST_RDONLY != 0 {
		flags |= 1
	}
	if st.Flags&unix.ST_NOSUID != 0 {
		flags |= 2
	}
	s.enc.begin(typeExtendedReply, id)
	for _, v := range []uint64{
		uint64(st.Bsize), uint64(st.Frsize), st.Blocks, st.Bfree, st.Bavail, st.Files, st.Ffree, st.Ffree,
		uint64(uint32(st.Fsid.Val[0])) | uint64(uint32(st.Fsid.Val[1]))<<32, flags, uint64(st.Namelen),
	} {
		s.enc.uint64(v)
	}
	s.enc.end()
	return nil
}

// limits lets OpenSSH's client ask for more than its cautious 32 KiB at once.
func (s *server) limits(id uint32) {
	s.enc.begin(typeExtendedReply, id)
	for _, v := range []uint64{maxPacket, maxData, maxData, maxHandles} {
		s.enc.uint64(v)
	}
	s.enc.end()
}

// expand is realpath with ~ and ~user.
func (s *server) expand(id uint32, name string) error {
	if rest, ok := strings.CutPrefix(name, "~"); ok {
		user, tail, _ := strings.Cut(rest, "/")
		home := s.dir
		if user != "" {
			var err error
			if home, err = homeOf(user); err != nil {
				return err
			}
		}
		name = home + "/" + tail
	}
	real, err := realpath(s.path(name))
	return s.nameReply(id, real, err)
}

// copyData copies within the container; a length of 0 is up to the end.
func (s *server) copyData(d *decoder) error {
	from, ferr := s.handles.file(d.bytes())
	fromAt, n := int64(d.uint64()), d.uint64()
	to, terr := s.handles.file(d.bytes())
	toAt := int64(d.uint64())
	if err := errors.Join(ferr, terr, d.err); err != nil {
		return err
	}
	if fromAt < 0 || toAt < 0 || from == to && (n == 0 || overlap(fromAt, toAt, n)) {
		return syscall.EINVAL
	}
	var src io.Reader = io.NewSectionReader(from.file, fromAt, 1<<62-fromAt)
	if n > 0 {
		src = io.LimitReader(src, int64(min(n, 1<<62)))
	}
	got, err := io.CopyBuffer(io.NewOffsetWriter(to.file, toAt), onlyReader{src}, make([]byte, maxPacket))
	if err == nil && n > 0 && uint64(got) < n {
		return errEOF
	}
	return ok(err)
}

// onlyReader keeps io.Copy to the buffer that it was given.
type onlyReader struct{ io.Reader }

func overlap(a, b int64, n uint64) bool {
	return uint64(max(a, b)-min(a, b)) < n
}

func (s *server) usersGroups(id uint32, d *decoder) error {
	users, groups := decoder{buf: d.bytes()}, decoder{buf: d.bytes()}
	if d.err != nil {
		return d.err
	}
	list := func(in *decoder, lookup func(uint32) string) string {
		var e encoder
		for len(in.buf) >= 4 {
			name := lookup(in.uint32())
			if _, err := strconv.Atoi(name); err == nil {
				name = "" // unknown, says the extension
			}
			e.string(name)
		}
		return string(e.buf)
	}
	s.enc.begin(typeExtendedReply, id)
	s.enc.string(list(&users, s.names.user))
	s.enc.string(list(&groups, s.names.group))
	s.enc.end()
	return nil
}

// homeOf is a user's home, by the container's own /etc/passwd.
func homeOf(user string) (string, error) {
	data, err := os.ReadFile("/etc/passwd")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(data)) {
		if f := strings.Split(strings.TrimSpace(line), ":"); len(f) >= 6 && f[0] == user {
			return f[5], nil
		}
	}
	return "", syscall.ENOENT
}

// readIDs reads names by number from a file in the form of passwd(5) or group(5).
func readIDs(path string) map[uint32]string {
	m := make(map[uint32]string)
	data, err := os.ReadFile(path)
	if err != nil {
		return m
	}
	for line := range strings.Lines(string(data)) {
		f := strings.SplitN(line, ":", 4)
		if len(f) < 3 {
			continue
		}
		if id, err := strconv.ParseUint(strings.TrimSpace(f[2]), 10, 32); err == nil && m[uint32(id)] == "" {
			m[uint32(id)] = f[0]
		}
	}
	return m
}
