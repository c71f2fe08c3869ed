package sftp

import (
	"errors"
	"io"
	"syscall"
)

// status is a protocol status code, draft-ietf-secsh-filexfer-02 section 7.
type status uint32

const (
	statusOK               status = 0
	statusEOF              status = 1
	statusNoSuchFile       status = 2
	statusPermissionDenied status = 3
	statusFailure          status = 4
	statusBadMessage       status = 5
	statusUnsupported      status = 8
)

// texts are OpenSSH's words for the codes.
var texts = map[status]string{
	statusOK: "Success", statusEOF: "End of file", statusNoSuchFile: "No such file", statusPermissionDenied: "Permission denied",
	statusFailure: "Failure", statusBadMessage: "Bad message", statusUnsupported: "Operation unsupported",
}

// Error makes a status usable as an error.
func (s status) Error() string { return texts[s] }

// statusOf turns an error into the code that OpenSSH's server gives for it.
func statusOf(err error) status {
	var s status
	var errno syscall.Errno
	switch {
	case err == nil:
		return statusOK
	case errors.As(err, &s):
		return s
	case errors.Is(err, io.EOF):
		return statusEOF
	case errors.Is(err, errShort):
		return statusBadMessage
	case errors.As(err, &errno):
		return errnoStatus(errno)
	}
	return statusFailure
}

func errnoStatus(errno syscall.Errno) status {
	switch errno {
	case syscall.ENOENT, syscall.ENOTDIR, syscall.EBADF, syscall.ELOOP:
		return statusNoSuchFile
	case syscall.EPERM, syscall.EACCES, syscall.EFAULT:
		return statusPermissionDenied
	case syscall.ENAMETOOLONG, syscall.EINVAL:
		return statusBadMessage
	case syscall.ENOSYS, syscall.EOPNOTSUPP:
		return statusUnsupported
	}
	return statusFailure
}
