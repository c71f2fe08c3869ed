package ws

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
)

// Opcodes, RFC 6455 section 5.2.
const (
	opContinue = 0x0
	opText     = 0x1
	opBinary   = 0x2
	opClose    = 0x8
	opPing     = 0x9
	opPong     = 0xa
)

// Status codes of a close frame, section 7.4.1.
const (
	statusNormal   = 1000
	statusProtocol = 1002
)

// maxControl is the longest payload of a control frame.
const maxControl = 125

// maxHeader is the longest frame header: two bytes, a 64-bit length and a mask.
const maxHeader = 14

// ErrProtocol is returned when the other side breaks the protocol.
var ErrProtocol = errors.New("websocket: the other side broke the protocol")

// header is a frame's header.
type header struct {
	fin    bool
	op     byte
	masked bool
	length uint64
	mask   [4]byte
}

func (h header) control() bool { return h.op >= opClose }

// parse reads a header from the start of b. It returns how long it is, or 0 and how many
// bytes it needs when b is too short.
func parse(b []byte) (h header, n, need int, err error) {
	if len(b) < 2 {
		return h, 0, 2, nil
	}
	h.fin, h.op, h.masked = b[0]&0x80 != 0, b[0]&0x0f, b[1]&0x80 != 0
	h.length = uint64(b[1] & 0x7f)
	short := h.length
	need = 2
	switch short {
	case 126:
		need += 2
	case 127:
		need += 8
	}
	at := need
	if h.masked {
		need += 4
	}
	if len(b) < need {
		return h, 0, need, nil
	}
	switch short {
	case 126:
		h.length = uint64(binary.BigEndian.Uint16(b[2:]))
	case 127:
		h.length = binary.BigEndian.Uint64(b[2:])
	}
	if h.masked {
		copy(h.mask[:], b[at:])
	}
	return h, need, 0, h.check(b[0])
}

// check holds a header to the rules that do not depend on what came before.
func (h header) check(first byte) error {
	known := h.op <= opBinary || h.op >= opClose && h.op <= opPong
	switch {
	case first&0x70 != 0, !known, h.length > 1<<63-1:
		return ErrProtocol
	case h.control() && (!h.fin || h.length > maxControl):
		return ErrProtocol
	}
	return nil
}

// appendHeader writes the header of a whole frame of n bytes; a client gives its mask.
func appendHeader(b []byte, op byte, n int, mask *[4]byte) []byte {
	var bit byte
	if mask != nil {
		bit = 0x80
	}
	b = append(b, 0x80|op)
	switch {
	case n <= maxControl:
		b = append(b, bit|byte(n))
	case n < 1<<16:
		b = binary.BigEndian.AppendUint16(append(b, bit|126), uint16(n))
	default:
		b = binary.BigEndian.AppendUint64(append(b, bit|127), uint64(n))
	}
	if mask != nil {
		b = append(b, mask[:]...)
	}
	return b
}

// newMask is a fresh mask for one frame, unpredictable as section 5.3 asks.
func newMask() *[4]byte {
	var m [4]byte
	_, _ = rand.Read(m[:]) // never fails
	return &m
}

// apply masks b, which begins pos bytes into the frame, eight bytes at a time.
func apply(b []byte, mask [4]byte, pos uint64) {
	var turned [8]byte
	for i := range turned {
		turned[i] = mask[(pos+uint64(i))&3]
	}
	word := binary.LittleEndian.Uint64(turned[:])
	for len(b) >= 32 {
		p := b[:32]
		binary.LittleEndian.PutUint64(p[0:], binary.LittleEndian.Uint64(p[0:])^word)
		binary.LittleEndian.PutUint64(p[8:], binary.LittleEndian.Uint64(p[8:])^word)
		binary.LittleEndian.PutUint64(p[16:], binary.LittleEndian.Uint64(p[16:])^word)
		binary.LittleEndian.PutUint64(p[24:], binary.LittleEndian.Uint64(p[24:])^word)
		b = b[32:]
	}
	for i := range b {
		b[i] ^= turned[i&7]
	}
}
