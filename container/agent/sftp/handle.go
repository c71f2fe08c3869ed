package sftp

import (
	"os"
	"strconv"
	"syscall"
)

// handle is an open file or directory.
type handle struct {
	file    *os.File
	name    string
	dir     bool
	dotted  bool // a directory whose . and .. were sent
	appends bool // written at its end, whatever offset the client names
}

// handles are a conversation's open files, by the name the client knows them by.
type handles struct {
	open map[string]*handle
	last uint64
}

// maxHandles bounds the open files of one conversation, below the usual limit of descriptors.
const maxHandles = 512

func (h *handles) add(x *handle) (string, error) {
	if len(h.open) >= maxHandles {
		_ = x.file.Close()
		return "", syscall.EMFILE
	}
	if h.open == nil {
		h.open = make(map[string]*handle)
	}
	h.last++
	name := strconv.FormatUint(h.last, 10)
	h.open[name] = x
	return name, nil
}

// file is the open file of that name, directory that of a directory. Both allocate nothing.
func (h *handles) file(name []byte) (*handle, error) {
	if x := h.open[string(name)]; x != nil && !x.dir {
		return x, nil
	}
	return nil, syscall.EBADF
}

func (h *handles) any(name []byte) (*handle, error) {
	if x := h.open[string(name)]; x != nil {
		return x, nil
	}
	return nil, syscall.EBADF
}

func (h *handles) close(name string) error {
	x := h.open[name]
	if x == nil {
		return syscall.EBADF
	}
	delete(h.open, name)
	return x.file.Close()
}

func (h *handles) closeAll() {
	for _, x := range h.open {
		_ = x.file.Close()
	}
}
