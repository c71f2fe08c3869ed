package sftp

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// dirChunk is how many entries one answer holds: with the longest names they fit a packet.
const dirChunk = 256

func (s *server) opendir(id uint32, d *decoder) error {
	name := s.path(d.string())
	if d.err != nil {
		return d.err
	}
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	h, err := s.handles.add(&handle{file: f, name: name, dir: true})
	if err != nil {
		return err
	}
	s.handleReply(id, h)
	return nil
}

// readdir answers with the next entries. The first answer begins with . and .., which clients
// expect and Go leaves out.
func (s *server) readdir(id uint32, d *decoder) error {
	h, err := s.handles.any(d.bytes())
	if err != nil || d.err != nil {
		return errors.Join(err, d.err)
	}
	if !h.dir {
		return syscall.EBADF
	}
	list, err := h.file.Readdirnames(dirChunk)
	if !h.dotted {
		h.dotted = true
		list = append([]string{".", ".."}, list...)
	} else if err != nil {
		return err
	}
	s.enc.begin(typeName, id)
	count := len(s.enc.buf)
	s.enc.uint32(0)
	n := uint32(0)
	for _, name := range list {
		var st unix.Stat_t
		if unix.Fstatat(int(h.file.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
			continue // removed meanwhile
		}
		s.enc.string(name)
		s.enc.string(s.longname(name, &st))
		s.enc.attrs(&st)
		n++
	}
	putUint32(s.enc.buf[count:], n)
	s.enc.end()
	return nil
}

func putUint32(b []byte, v uint32) {
	b[0], b[1], b[2], b[3] = byte(v>>24), byte(v>>16), byte(v>>8), byte(v)
}

// longname is a line of `ls -l`, which old clients show as it is.
func (s *server) longname(name string, st *unix.Stat_t) string {
	at := time.Unix(st.Mtim.Sec, 0)
	layout := "Jan _2 15:04"
	if age := time.Since(at); age > 180*24*time.Hour || age < 0 {
		layout = "Jan _2  2006"
	}
	return fmt.Sprintf("%s %4d %-8s %-8s %8d %s %s", modeText(st.Mode), st.Nlink,
		s.names.user(st.Uid), s.names.group(st.Gid), st.Size, at.Format(layout), name)
}

var kinds = map[uint32]byte{
	unix.S_IFDIR: 'd', unix.S_IFLNK: 'l', unix.S_IFCHR: 'c', unix.S_IFBLK: 'b', unix.S_IFIFO: 'p', unix.S_IFSOCK: 's',
}

// modeText writes a mode as strmode(3) does.
func modeText(mode uint32) string {
	text := []byte("-rwxrwxrwx ")
	if k := kinds[mode&unix.S_IFMT]; k != 0 {
		text[0] = k
	}
	for i := range 9 {
		if mode&(1<<(8-i)) == 0 {
			text[i+1] = '-'
		}
	}
	for _, special := range []struct {
		bit  uint32
		at   int
		both byte
	}{{unix.S_ISUID, 3, 's'}, {unix.S_ISGID, 6, 's'}, {unix.S_ISVTX, 9, 't'}} {
		if mode&special.bit == 0 {
			continue
		}
		if text[special.at] == '-' {
			text[special.at] = special.both - 'a' + 'A'
		} else {
			text[special.at] = special.both
		}
	}
	return string(text)
}

// names looks ids up in the container's own files, once.
type names struct {
	users, groups map[uint32]string
}

func (n *names) user(id uint32) string {
	if n.users == nil {
		n.users = readIDs("/etc/passwd")
	}
	return nameOr(n.users, id)
}

func (n *names) group(id uint32) string {
	if n.groups == nil {
		n.groups = readIDs("/etc/group")
	}
	return nameOr(n.groups, id)
}

func nameOr(m map[uint32]string, id uint32) string {
	if name := m[id]; name != "" {
		return name
	}
	return strconv.FormatUint(uint64(id), 10)
}
