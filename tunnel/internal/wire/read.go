package wire

import (
	"errors"
	"fmt"
	"io"
)

// Limits of one message. A registration is about 400 bytes; the largest thing that arrives is a
// remote configuration.
const (
	MaxMessage  = 1 << 20 // bytes, all segments together
	maxSegments = 64
	maxHops     = 16 << 10 // pointers followed while reading one message
	maxList     = 4096     // elements of a list of structs
)

// ErrMalformed is the class of every message that breaks the encoding's rules.
var ErrMalformed = errors.New("malformed message")

// message is the segments of one message.
type message struct {
	segments [][]byte
	hops     int
}

// readMessage reads one framed message. It returns io.EOF when the stream ends between messages.
func readMessage(r io.Reader) (*message, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := uint64(le.Uint32(head[:])) + 1
	if n > maxSegments {
		return nil, fmt.Errorf("%w: %d segments", ErrMalformed, n)
	}
	table := make([]byte, (n*4+4+7)&^7-4) // lengths, padded so that the first segment is aligned
	if _, err := io.ReadFull(r, table); err != nil {
		return nil, unexpected(err)
	}
	var total uint64
	for i := range n {
		total += uint64(le.Uint32(table[4*i:])) * 8
	}
	if total > MaxMessage {
		return nil, fmt.Errorf("%w: %d bytes", ErrMalformed, total)
	}
	m := &message{segments: make([][]byte, n)}
	body := make([]byte, total)
	if _, err := io.ReadFull(r, body); err != nil {
		return nil, unexpected(err)
	}
	for i := range n {
		size := uint64(le.Uint32(table[4*i:])) * 8
		m.segments[i], body = body[:size], body[size:]
	}
	return m, nil
}

func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// word returns the eight bytes at a place, after checking that they exist.
func (m *message) word(seg, off int) (uint64, error) {
	if seg < 0 || seg >= len(m.segments) || off < 0 || off+8 > len(m.segments[seg]) {
		return 0, fmt.Errorf("%w: pointer outside the message", ErrMalformed)
	}
	return le.Uint64(m.segments[seg][off:]), nil
}

// place is where a pointer leads: the object's segment and offset, and the pointer word that
// describes its shape. A zero word is a null pointer.
type place struct {
	seg, off int
	word     uint64
}

// follow resolves the pointer at (seg, off), through at most one far pointer.
func (m *message) follow(seg, off int) (place, error) {
	if m.hops++; m.hops > maxHops {
		return place{}, fmt.Errorf("%w: too many pointers", ErrMalformed)
	}
	w, err := m.word(seg, off)
	if err != nil || w == 0 {
		return place{}, err
	}
	if w&3 != 2 {
		return place{seg, near(off, w), w}, nil
	}
	farSeg, farOff := int(w>>32), int(uint32(w)>>3)*8
	pad, err := m.word(farSeg, farOff)
	if err != nil {
		return place{}, err
	}
	if w&4 == 0 { // the landing pad is an ordinary pointer
		if pad == 0 || pad&3 == 2 {
			return place{}, fmt.Errorf("%w: far pointer to a far pointer", ErrMalformed)
		}
		return place{farSeg, near(farOff, pad), pad}, nil
	}
	tag, err := m.word(farSeg, farOff+8) // the landing pad is a far pointer and a tag
	if err != nil {
		return place{}, err
	}
	if pad&7 != 2 || tag&3 == 2 {
		return place{}, fmt.Errorf("%w: double far pointer", ErrMalformed)
	}
	return place{int(pad >> 32), int(uint32(pad)>>3) * 8, tag}, nil
}

// near is where an ordinary pointer at off leads.
func near(off int, w uint64) int { return off + 8 + int(int32(uint32(w))>>2)*8 }

// view is a struct inside a message. The zero value, and every field that was not sent, reads
// as zero.
type view struct {
	m         *message
	seg, off  int
	data, ptr int // size in words
}

func (m *message) root() (view, error) { return m.structure(0, 0) }

// structure reads the struct that the pointer at (seg, off) leads to.
func (m *message) structure(seg, off int) (view, error) {
	p, err := m.follow(seg, off)
	if err != nil || p.word == 0 {
		return view{m: m}, err
	}
	v := view{m: m, seg: p.seg, off: p.off, data: int(p.word >> 32 & 0xffff), ptr: int(p.word >> 48)}
	if p.word&3 != 0 {
		return view{}, fmt.Errorf("%w: a struct was expected", ErrMalformed)
	}
	if v.data+v.ptr == 0 {
		return view{m: m}, nil
	}
	if err := m.span(p.seg, p.off, 8*(v.data+v.ptr)); err != nil {
		return view{}, err // never a view that reaches outside: decoders go on after an error
	}
	return v, nil
}

// span checks that n bytes at a place exist.
func (m *message) span(seg, off, n int) error {
	if seg < 0 || seg >= len(m.segments) || off < 0 || n < 0 || off+n > len(m.segments[seg]) {
		return fmt.Errorf("%w: object outside the message", ErrMalformed)
	}
	return nil
}

// u64 reads the word that holds byte b of the data section.
func (v view) u64(b int) uint64 {
	if b+8 > v.data*8 {
		return 0
	}
	return le.Uint64(v.m.segments[v.seg][v.off+b:])
}

func (v view) u32(b int) uint32 { return uint32(v.u64(b&^7) >> (8 * (b & 7))) }
func (v view) u16(b int) uint16 { return uint16(v.u32(b)) }
func (v view) u8(b int) uint8   { return uint8(v.u32(b)) }
func (v view) bit(n int) bool   { return v.u64(n/64*8)>>(n%64)&1 == 1 }

// pointer resolves pointer i. A pointer beyond the sent size is null.
func (v view) pointer(i int) (place, error) {
	if i >= v.ptr {
		return place{}, nil
	}
	return v.m.follow(v.seg, v.off+8*(v.data+i))
}

func (v view) sub(i int) (view, error) {
	if i >= v.ptr {
		return view{m: v.m}, nil
	}
	return v.m.structure(v.seg, v.off+8*(v.data+i))
}

// bytes reads a list of bytes. The result shares the message's memory.
func (v view) bytes(i int) ([]byte, error) {
	p, err := v.pointer(i)
	if err != nil || p.word == 0 {
		return nil, err
	}
	n := int(p.word >> 35)
	if p.word&3 != 1 || p.word>>32&7 != codeByte {
		return nil, fmt.Errorf("%w: bytes were expected", ErrMalformed)
	}
	if err := v.m.span(p.seg, p.off, n); err != nil {
		return nil, err
	}
	return v.m.segments[p.seg][p.off : p.off+n : p.off+n], nil
}

func (v view) text(i int) (string, error) {
	b, err := v.bytes(i)
	if n := len(b); n > 0 && b[n-1] == 0 {
		b = b[:n-1]
	}
	return string(b), err
}

// texts reads a list of strings.
func (v view) texts(i int) ([]string, error) {
	p, err := v.pointer(i)
	if err != nil || p.word == 0 {
		return nil, err
	}
	n := int(p.word >> 35)
	if p.word&3 != 1 || p.word>>32&7 != codePointer || n > maxList {
		return nil, fmt.Errorf("%w: a list of texts was expected", ErrMalformed)
	}
	if err := v.m.span(p.seg, p.off, 8*n); err != nil {
		return nil, err
	}
	items := view{m: v.m, seg: p.seg, off: p.off, ptr: n}
	out := make([]string, n)
	for j := range out {
		if out[j], err = items.text(j); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// list reads a list of structs.
func (v view) list(i int) ([]view, error) {
	p, err := v.pointer(i)
	if err != nil || p.word == 0 {
		return nil, err
	}
	if p.word&3 != 1 || p.word>>32&7 != codeComposite {
		return nil, fmt.Errorf("%w: a list of structs was expected", ErrMalformed)
	}
	tag, err := v.m.word(p.seg, p.off)
	if err != nil {
		return nil, err
	}
	n, data, ptr := int(uint32(tag)>>2), int(tag>>32&0xffff), int(tag>>48)
	if n > maxList {
		return nil, fmt.Errorf("%w: list of %d", ErrMalformed, n)
	}
	size := 8 * (data + ptr)
	if err := v.m.span(p.seg, p.off+8, n*size); err != nil {
		return nil, err
	}
	out := make([]view, n)
	for j := range out {
		out[j] = view{m: v.m, seg: p.seg, off: p.off + 8 + j*size, data: data, ptr: ptr}
	}
	return out, nil
}
