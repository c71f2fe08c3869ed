package agent

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// StreamKind says what a terminal frame holds.
type StreamKind byte

// Terminal frames. Data goes both ways; a size goes to the agent, and to watchers.
const (
	StreamData   StreamKind = 'd'
	StreamResize StreamKind = 'r' // Size, four big-endian uint16: columns, rows, width, height
)

// MaxStreamFrame bounds the payload of one terminal frame.
const MaxStreamFrame = 32 << 10

const streamHead = 4

// streamRoom is how much is read from a terminal at once: the kernel gives no more.
const streamRoom = 8 << 10

// StreamWriter writes terminal frames, each in a single write. It is not safe for
// concurrent use.
type StreamWriter struct {
	W   io.Writer
	buf []byte
}

// Room is where the payload of the next frame can be read into, so that a frame is
// never copied.
func (w *StreamWriter) Room() []byte {
	if w.buf == nil {
		w.buf = make([]byte, streamHead+streamRoom)
	}
	return w.buf[streamHead:]
}

// Frame makes the first n bytes of Room a frame, which is valid until Room is used again.
func (w *StreamWriter) Frame(kind StreamKind, n int) []byte {
	binary.BigEndian.PutUint32(w.buf[:streamHead], uint32(n)) // n ≤ MaxStreamFrame: the top byte is free
	w.buf[0] = byte(kind)
	return w.buf[:streamHead+n]
}

// Flush writes the first n bytes of Room as one frame.
func (w *StreamWriter) Flush(kind StreamKind, n int) error {
	_, err := w.W.Write(w.Frame(kind, n))
	return err
}

// Write sends p as data frames.
func (w *StreamWriter) Write(p []byte) (int, error) {
	for done := 0; done < len(p); {
		n := copy(w.Room(), p[done:])
		if err := w.Flush(StreamData, n); err != nil {
			return done, err
		}
		done += n
	}
	return len(p), nil
}

// appendFrame appends one frame to b; p is at most MaxStreamFrame long.
func appendFrame(b []byte, kind StreamKind, p []byte) []byte {
	return append(append(b, byte(kind), byte(len(p)>>16), byte(len(p)>>8), byte(len(p))), p...)
}

func appendSize(b []byte, s Size) []byte {
	var p []byte
	for _, v := range []uint16{s.Cols, s.Rows, s.Width, s.Height} {
		p = binary.BigEndian.AppendUint16(p, v)
	}
	return appendFrame(b, StreamResize, p)
}

// WriteSize sends a new size to w.
func WriteSize(w io.Writer, s Size) error {
	_, err := w.Write(appendSize(nil, s))
	return err
}

// StreamReader reads terminal frames.
type StreamReader struct {
	R   io.Reader
	buf []byte
	// have is what was read beyond the last frame.
	start, end int
}

// readerSize is what a reader begins with: a terminal that is typed on needs no more. It grows to
// the longest frame that comes.
const readerSize = 2 << 10

// Next returns the next frame; its payload is valid until the following call. It returns io.EOF
// at an end between two frames and an error wrapping ErrFrame for one that cannot be ours.
func (r *StreamReader) Next() (StreamKind, []byte, error) {
	if err := r.fill(streamHead); err != nil {
		return 0, nil, err
	}
	head := r.buf[r.start:]
	kind := StreamKind(head[0])
	n := int(head[1])<<16 | int(head[2])<<8 | int(head[3])
	if n > MaxStreamFrame || (kind != StreamData && kind != StreamResize) {
		return 0, nil, fmt.Errorf("%w: terminal frame %q of %d bytes", ErrFrame, byte(kind), n)
	}
	if err := r.fill(streamHead + n); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return 0, nil, err
	}
	body := r.buf[r.start+streamHead : r.start+streamHead+n]
	r.start += streamHead + n
	return kind, body, nil
}

// fill makes at least n bytes available from start.
func (r *StreamReader) fill(n int) error {
	if r.start+n > len(r.buf) || r.start == r.end {
		buf := r.buf
		if n > len(buf) {
			buf = make([]byte, max(n, readerSize, min(4*len(buf), streamHead+MaxStreamFrame)))
		}
		r.end = copy(buf, r.buf[r.start:r.end])
		r.start, r.buf = 0, buf
	}
	for r.end-r.start < n {
		m, err := r.R.Read(r.buf[r.end:])
		r.end += m
		if err == nil || r.end-r.start >= n {
			continue
		}
		if errors.Is(err, io.EOF) && r.end != r.start {
			return io.ErrUnexpectedEOF
		}
		return err
	}
	return nil
}

// ParseSize reads the payload of a resize frame.
func ParseSize(b []byte) (Size, error) {
	if len(b) != 8 {
		return Size{}, fmt.Errorf("%w: size of %d bytes", ErrFrame, len(b))
	}
	at := func(i int) uint16 { return binary.BigEndian.Uint16(b[2*i:]) }
	return Size{Cols: at(0), Rows: at(1), Width: at(2), Height: at(3)}, nil
}
