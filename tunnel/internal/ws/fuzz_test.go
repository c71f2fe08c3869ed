package ws

import (
	"bytes"
	"errors"
	"io"
	"testing"
)

// wire is a transport whose other side has sent everything already.
type wire struct {
	in   io.Reader
	sent bytes.Buffer
}

func (w *wire) Read(p []byte) (int, error)  { return w.in.Read(p) }
func (w *wire) Write(p []byte) (int, error) { return w.sent.Write(p) }
func (w *wire) Close() error                { return nil }

// oneByOne hands out single bytes.
type oneByOne struct{ r io.Reader }

func (o oneByOne) Read(p []byte) (int, error) { return o.r.Read(p[:min(1, len(p))]) }

// Whatever a guest sends: reading ends, in the same way however it is cut, with no more
// bytes than were sent, and what we answer is frames.
func FuzzConn(f *testing.F) {
	f.Add([]byte("\x82\x81\x01\x02\x03\x04x"))
	f.Add([]byte("\x02\x82\x00\x00\x00\x00ab\x89\x80\x00\x00\x00\x00\x80\x81\x00\x00\x00\x00c\x88\x80\x00\x00\x00\x00"))
	f.Add([]byte("\x82\xfe\x00\x7e\x00\x00\x00\x00"))
	f.Add([]byte("\x82\xff\xff\xff\xff\xff\xff\xff\xff\xff\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		whole, pieces := &wire{in: bytes.NewReader(data)}, &wire{in: oneByOne{bytes.NewReader(data)}}
		a, b := newConn(whole, false, nil), newConn(pieces, false, nil)
		got, err := io.ReadAll(a)
		again, err2 := io.ReadAll(b)
		if !bytes.Equal(got, again) || !errors.Is(err, err2) {
			t.Fatalf("whole %q %v, in pieces %q %v", got, err, again, err2)
		}
		if len(got) > len(data) {
			t.Fatalf("%d bytes out of %d", len(got), len(data))
		}
		a.ping.Stop()
		b.ping.Stop()
		back := newConn(&wire{in: &whole.sent}, true, nil)
		if _, err := io.ReadAll(back); err != nil {
			t.Fatalf("what we answered is broken: %v", err)
		}
	})
}

func FuzzMask(f *testing.F) {
	f.Add([]byte("hello world, this is more than eight"), uint64(3))
	f.Fuzz(func(t *testing.T, data []byte, pos uint64) {
		mask := [4]byte{9, 8, 7, 6}
		got := bytes.Clone(data)
		apply(got, mask, pos)
		for i := range data {
			if got[i] != data[i]^mask[(pos+uint64(i))&3] {
				t.Fatalf("byte %d of %d", i, len(data))
			}
		}
	})
}
