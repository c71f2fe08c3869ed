package gateway

import (
	"io"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// bufferSize is how much is moved at once: several of the 32 KiB packets that SSH is cut into.
const bufferSize = 256 << 10

var buffers = sync.Pool{New: func() any { b := make([]byte, bufferSize); return &b }}

// puller reads whatever is there into a borrowed buffer, and holds none while it waits: a
// connection that is silent costs no buffer.
type puller struct {
	r     io.Reader
	raw   syscall.RawConn
	ready func(fd uintptr) bool
	buf   *[]byte
}

// newPuller returns nil where the kernel cannot be asked whether r has something.
func newPuller(r io.Reader) *puller {
	sc, ok := r.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return nil
	}
	return &puller{r: r, raw: raw, ready: readable}
}

// readable looks without waiting.
func readable(fd uintptr) bool {
	look := [1]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := unix.Poll(look[:], 0)
	return n != 0 || err != nil // a failure is the read's to tell
}

// pull returns what there is, as Read does. The caller releases it.
func (p *puller) pull() ([]byte, error) {
	if err := p.raw.Read(p.ready); err != nil {
		return nil, err
	}
	p.buf = buffers.Get().(*[]byte)
	n, err := p.r.Read(*p.buf)
	if n == 0 {
		p.release()
		return nil, err
	}
	return (*p.buf)[:n], nil
}

func (p *puller) release() {
	if p.buf != nil {
		buffers.Put(p.buf)
		p.buf = nil
	}
}
