package sftp

import (
	"errors"
	"io"
	"syscall"
)

// status is a protocol status code, draft-ietf-secsh-filexfer-02 section 7.
type status uint32

const (
	errNone             status = 0
	errEOF              status = 1
	errNoSuchFile       status = 2
	errPermissionDenied status = 3
	errFailure          status = 4
	errBadMessage       status = 5
	errUnsupported      status = 8
)

// texts are OpenSSH's words for the codes.
var texts = map[status]string{
	errNone: "Success", errEOF: "End of file", errNoSuchFile: "No such file", errPermissionDenied: "Permission denied",
	errFailure: "Failure", errBadMessage: "Bad message", errUnsupported: "Operation unsupported",
}

// Error makes a status usable as an error.
func (s status) Error() string { return texts[s] }

// statusOf turns an error into the code that OpenSSH's server gives for it.
func statusOf(err error) status {
	var s status
	var errno syscall.Errno
	switch {
	case err == nil:
		return errNone
	case errors.As(err, &s):
		return s
	case errors.Is(err, io.EOF):
		return errEOF
	case errors.Is(err, errShort):
		return errBadMessage
	case errors.As(err, &errno):
		return errnoStatus(errno)
	}
	return errFailure
}

func errnoStatus(errno syscall.Errno) status {
	switch errno {
	case syscall.ENOENT, syscall.ENOTDIR, syscall.EBADF, syscall.ELOOP:
		return errNoSuchFile
	case syscall.EPERM, syscall.EACCES, syscall.EFAULT:
		return errPermissionDenied
	case syscall.ENAMETOOLONG, syscall.EINVAL:
		return errBadMessage
	case syscall.ENOSYS, syscall.EOPNOTSUPP:
		return errUnsupported
	default:
		return errFailure
	}
}
