package gateway

import (
	"bytes"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// stepConn writes one piece at a time: each waits for a step.
type stepConn struct {
	net.Conn
	step chan error // what the next write returns

	mu     sync.Mutex
	pieces [][]byte
	closed bool
}

func (c *stepConn) Write(p []byte) (int, error) {
	c.mu.Lock()
	c.pieces = append(c.pieces, bytes.Clone(p))
	c.mu.Unlock()
	return len(p), <-c.step
}

func (c *stepConn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.closed = true
		close(c.step)
	}
	return nil
}

func (c *stepConn) sizes() []int {
	c.mu.Lock()
	defer c.mu.Unlock()
	var n []int
	for _, p := range c.pieces {
		n = append(n, len(p))
	}
	return n
}

// TestOutboxGathers: what is written while a piece is under way leaves as one, in order.
func TestOutboxGathers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &stepConn{step: make(chan error)}
		o := newOutbox(c)
		want := []byte{}
		for i := range 5 {
			p := bytes.Repeat([]byte{byte(i)}, 5000)
			want = append(want, p...)
			if n, err := o.write(p); n != len(p) || err != nil {
				t.Fatalf("write %d: %d, %v", i, n, err)
			}
			synctest.Wait()
		}
		c.step <- nil
		synctest.Wait()
		c.step <- nil
		synctest.Wait()
		if got := c.sizes(); len(got) != 2 || got[0] != 5000 || got[1] != 20000 {
			t.Errorf("pieces of %v, want 5000 and 20000", got)
		}
		if got := bytes.Join(c.pieces, nil); !bytes.Equal(got, want) {
			t.Error("the bytes differ")
		}
	})
}

// TestOutboxWaits: a client that reads nothing stops its writer, at a bounded size, and a
// failure reaches it.
func TestOutboxWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &stepConn{step: make(chan error)}
		o := newOutbox(c)
		written, failed := 0, make(chan error, 1)
		go func() {
			for {
				n, err := o.write(make([]byte, 32<<10))
				if err != nil {
					failed <- err
					return
				}
				written += n
			}
		}()
		synctest.Wait()
		if limit := 2 * bufferSize; written > limit {
			t.Errorf("%d bytes wait for a client that reads nothing, limit %d", written, limit)
		}
		gone := errors.New("gone")
		c.step <- gone
		if err := <-failed; !errors.Is(err, gone) {
			t.Errorf("the writer got %v", err)
		}
	})
}

// TestOutboxClose: what was written before the end still leaves, but only for so long.
func TestOutboxClose(t *testing.T) {
	for _, reads := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			c := &stepConn{step: make(chan error)}
			o := newOutbox(c)
			_, _ = o.write(make([]byte, 5000))
			synctest.Wait()
			_, _ = o.write([]byte("the reason"))
			began := time.Now()
			if reads {
				go func() { c.step <- nil; c.step <- nil }()
			}
			if err := o.close(); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); reads && took > 0 || took > farewellTimeout {
				t.Errorf("reads %v: closing took %v", reads, took)
			}
			if got := c.sizes(); reads && len(got) != 2 {
				t.Errorf("pieces of %v", got)
			}
			if _, err := o.write([]byte("x")); !errors.Is(err, net.ErrClosed) {
				t.Errorf("a write after the end: %v", err)
			}
		})
	}
}

// TestPump: all bytes arrive whatever the pieces they come in, from what the kernel can be
// asked about and from what it cannot.
func TestPump(t *testing.T) {
	want := make([]byte, 3*bufferSize+17)
	for i := range want {
		want[i] = byte(i * 7)
	}
	for _, size := range []int{1 << 10, firstRead, 32 << 10, len(want)} {
		a, b := net.Pipe()
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		far, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		near, err := ln.Accept()
		if err != nil {
			t.Fatal(err)
		}
		_ = ln.Close()
		for name, pair := range map[string][2]net.Conn{"plain": {a, b}, "socket": {near, far}} {
			go func() {
				for at := 0; at < len(want); at += size {
					_, _ = pair[1].Write(want[at:min(at+size, len(want))])
				}
				_ = pair[1].Close()
			}()
			var got bytes.Buffer
			if err := pump(&got, pair[0]); err != nil || !bytes.Equal(got.Bytes(), want) {
				t.Errorf("%s in pieces of %d: %v, %d of %d bytes", name, size, err, got.Len(), len(want))
			}
			_ = pair[0].Close()
		}
	}
	if err := pump(brokenWriter{}, bytes.NewReader(want)); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("a failed write: %v", err)
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, io.ErrShortWrite }
