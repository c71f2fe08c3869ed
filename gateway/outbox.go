package gateway

import (
	"net"
	"sync"
	"time"
)

// outbox lets what is written in a row leave in one system call, while the writer goes on
// with the next packet. The SSH library writes each packet of 32 KiB as 4 KiB and the rest, and
// waits for both: more than half of a download's time went into that.
type outbox struct {
	conn net.Conn

	mu     sync.Mutex
	room   *sync.Cond // something below changed
	buf    []byte     // waits to be sent
	busy   bool       // somebody sends
	closed bool
	err    error // of an earlier send; every later write returns it
}

// sendAtOnce bounds what is sent by its writer: a single packet, such as an echoed key. The
// library's own buffer has 4 KiB, so that every piece of a longer one is larger.
const sendAtOnce = 4 << 10

func newOutbox(c net.Conn) *outbox {
	o := &outbox{conn: c}
	o.room = sync.NewCond(&o.mu)
	return o
}

// write takes p. It waits for room, not until p is sent.
func (o *outbox) write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.err == nil && !o.closed && len(o.buf) > 0 && len(o.buf)+len(p) > bufferSize {
		o.room.Wait()
	}
	switch {
	case o.err != nil:
		return 0, o.err
	case o.closed:
		return 0, net.ErrClosed
	case !o.busy && len(p) < sendAtOnce:
		o.busy = true
		o.send(p)
		o.next()
		return len(p), o.err
	}
	if o.buf == nil {
		o.buf = (*buffers.Get().(*[]byte))[:0]
	}
	o.buf = append(o.buf, p...)
	if !o.busy {
		o.busy = true
		go o.flush()
	}
	return len(p), nil
}

// send sends p. The caller holds mu, which is free meanwhile, and has set busy.
func (o *outbox) send(p []byte) {
	o.mu.Unlock()
	_, err := o.conn.Write(p)
	o.mu.Lock()
	if o.err == nil {
		o.err = err
	}
}

// next hands on what came while somebody sent. The caller holds mu.
func (o *outbox) next() {
	if o.busy = len(o.buf) > 0 && o.err == nil; o.busy {
		go o.flush()
	}
	o.room.Broadcast()
}

// flush sends until nothing waits.
func (o *outbox) flush() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.buf) > 0 && o.err == nil {
		b := o.buf
		o.buf = nil
		o.room.Broadcast()
		o.send(b)
		b = b[:cap(b)]
		buffers.Put(&b)
	}
	o.busy, o.buf = false, nil
	o.room.Broadcast()
}

// close closes the connection after what was written before is sent, to a client that reads
// it within farewellTimeout.
func (o *outbox) close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.room.Broadcast()
	late := time.AfterFunc(farewellTimeout, func() { _ = o.conn.Close() })
	defer late.Stop()
	for o.busy {
		o.room.Wait()
	}
	return o.conn.Close()
}
