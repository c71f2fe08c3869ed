package ws

import (
	"net"
	"time"
)

// Write sends p in binary messages, each as one frame in one write.
func (c *Conn) Write(p []byte) (int, error) {
	done := 0
	for done < len(p) {
		k := min(len(p)-done, maxPayload)
		if err := c.frame(opBinary, p[done:done+k]); err != nil {
			return done, err
		}
		done += k
	}
	return done, nil
}

// frame sends one whole frame.
func (c *Conn) frame(op byte, p []byte) error {
	buf := frames.Get().(*[]byte)
	defer frames.Put(buf)
	var mask *[4]byte
	if c.client {
		mask = newMask()
	}
	b := appendHeader((*buf)[:0], op, len(p), mask)
	at := len(b)
	b = append(b, p...)
	if mask != nil {
		apply(b[at:], *mask, 0)
	}
	*buf = b
	c.wmu.Lock()
	defer c.wmu.Unlock()
	return c.put(b)
}

// put writes b. After a failure the stream of frames is broken for good. The caller holds wmu.
func (c *Conn) put(b []byte) error {
	if c.writeErr != nil {
		return c.writeErr
	}
	c.bound(stallLimit)
	if _, err := c.raw.Write(b); err != nil {
		c.writeErr = err
		return err
	}
	if c.ping != nil {
		c.ping.Reset(pingEvery)
	}
	return nil
}

// bound lets a write that begins now take d, or what the caller allows where that is less.
func (c *Conn) bound(d time.Duration) {
	c.dmu.Lock()
	defer c.dmu.Unlock()
	limit := time.Now().Add(d)
	if !c.deadline.IsZero() && c.deadline.Before(limit) {
		limit = c.deadline
	}
	_ = c.setRaw(limit)
}

func (c *Conn) setRaw(t time.Time) error {
	if d, ok := c.raw.(interface{ SetWriteDeadline(time.Time) error }); ok {
		return d.SetWriteDeadline(t)
	}
	return nil
}

// sendPing is the timer's. It does not wait behind a write that is under way: that keeps
// the connection alive by itself.
func (c *Conn) sendPing() {
	if !c.wmu.TryLock() {
		return
	}
	err := c.put(appendHeader(nil, opPing, 0, nil))
	c.wmu.Unlock()
	if err != nil {
		_ = c.Close()
	}
}

// sendClose says goodbye, briefly: nothing is sent after it.
func (c *Conn) sendClose(code uint16) {
	var mask *[4]byte
	if c.client {
		mask = newMask()
	}
	b := appendHeader(nil, opClose, 2, mask)
	b = append(b, byte(code>>8), byte(code))
	if mask != nil {
		apply(b[len(b)-2:], *mask, 0)
	}
	if !c.wmu.TryLock() { // a write is stuck: there is no use in waiting behind it
		return
	}
	defer c.wmu.Unlock()
	_ = c.SetWriteDeadline(time.Now().Add(farewell))
	if c.put(b) == nil {
		c.writeErr = net.ErrClosed
	}
}

// Close says goodbye and closes the transport, the first time.
func (c *Conn) Close() error {
	var err error
	c.once.Do(func() {
		if c.ping != nil {
			c.ping.Stop()
		}
		c.sendClose(statusNormal)
		err = c.raw.Close()
		close(c.gone)
	})
	return err
}

// Closed is closed when Close was called.
func (c *Conn) Closed() <-chan struct{} { return c.gone }

// SetDeadline sets both deadlines.
func (c *Conn) SetDeadline(t time.Time) error {
	err := c.SetReadDeadline(t)
	if werr := c.SetWriteDeadline(t); err == nil {
		err = werr
	}
	return err
}

// SetReadDeadline is the transport's. A read that it ends can be repeated.
func (c *Conn) SetReadDeadline(t time.Time) error {
	if d, ok := c.raw.(interface{ SetReadDeadline(time.Time) error }); ok {
		return d.SetReadDeadline(t)
	}
	return nil
}

// SetWriteDeadline bounds writes, also one that is under way. A write that it ends breaks the
// connection.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	c.dmu.Lock()
	defer c.dmu.Unlock()
	c.deadline = t
	if t.IsZero() {
		return nil
	}
	return c.setRaw(t)
}
