package sftp

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// paths answers the requests that are about names.
func (s *server) paths(kind byte, id uint32, d *decoder) error {
	name := d.string()
	if d.err != nil {
		return d.err
	}
	if strings.ContainsRune(name, 0) {
		return errBadMessage
	}
	full := s.path(name)
	switch kind {
	case typeRemove:
		return ok(unix.Unlink(full))
	case typeMkdir:
		a := readAttrs(d)
		mode := uint32(0o777)
		if a.has(attrPermissions) {
			mode = a.mode & 0o7777
		}
		if d.err != nil {
			return d.err
		}
		return ok(unix.Mkdir(full, mode))
	case typeRmdir:
		return ok(unix.Rmdir(full))
	case typeRealpath:
		real, err := realpath(full)
		return s.nameReply(id, real, err)
	case typeReadlink:
		target, err := os.Readlink(full)
		return s.nameReply(id, target, err)
	case typeRename, typeSymlink:
		other := d.string()
		if d.err != nil {
			return d.err
		}
		if kind == typeRename {
			return ok(rename(full, s.path(other)))
		}
		// OpenSSH sends the target first, against the draft, and everybody follows it
		// (its PROTOCOL section 4.1). The target is taken to the letter.
		return ok(os.Symlink(name, s.path(other)))
	}
	return errUnsupported
}

// nameReply answers with one name and no attributes.
func (s *server) nameReply(id uint32, name string, err error) error {
	if err != nil {
		return err
	}
	s.enc.begin(typeName, id)
	s.enc.uint32(1)
	s.enc.string(name)
	s.enc.string(name)
	s.enc.uint32(0)
	s.enc.end()
	return nil
}

// realpath resolves every link; the last part need not exist, as in OpenSSH's server.
func realpath(name string) (string, error) {
	real, err := filepath.EvalSymlinks(name)
	if errors.Is(err, os.ErrNotExist) {
		dir, base := filepath.Split(strings.TrimRight(name, "/"))
		if base == ".." || base == "." || base == "" {
			return "", err
		}
		if dir, err = filepath.EvalSymlinks(dir); err != nil {
			return "", err
		}
		return filepath.Join(dir, base), nil
	}
	return real, err
}

// rename never replaces anything: that is posix-rename's to do.
func rename(from, to string) error {
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
	if !errors.Is(err, syscall.EINVAL) && !errors.Is(err, syscall.ENOSYS) {
		return err
	}
	// The file system does not know that flag. A link fails where something is; a directory
	// cannot be linked, and is looked for first.
	if err = unix.Link(from, to); err == nil {
		return unix.Unlink(from)
	}
	if errors.Is(err, syscall.EEXIST) {
		return err
	}
	var st unix.Stat_t
	if unix.Lstat(to, &st) == nil {
		return syscall.EEXIST
	}
	return unix.Rename(from, to)
}
