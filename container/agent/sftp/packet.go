package sftp

import (
	"encoding/binary"
	"errors"
)

// Packet types, draft-ietf-secsh-filexfer-02 section 3.
const (
	typeInit     = 1
	typeVersion  = 2
	typeOpen     = 3
	typeClose    = 4
	typeRead     = 5
	typeWrite    = 6
	typeLstat    = 7
	typeFstat    = 8
	typeSetstat  = 9
	typeFsetstat = 10
	typeOpendir  = 11
	typeReaddir  = 12
	typeRemove   = 13
	typeMkdir    = 14
	typeRmdir    = 15
	typeRealpath = 16
	typeStat     = 17
	typeRename   = 18
	typeReadlink = 19
	typeSymlink  = 20
	typeExtended = 200

	typeStatus        = 101
	typeHandle        = 102
	typeData          = 103
	typeName          = 104
	typeAttrs         = 105
	typeExtendedReply = 201
)

// maxPacket bounds a packet in either direction, as OpenSSH's server does; maxData is what
// remains for the bytes of a file.
const (
	maxPacket = 256 << 10
	maxData   = maxPacket - 1024
)

// errShort is returned for a packet that ends too early.
var errShort = errors.New("sftp: packet too short")

// decoder reads the fields of one packet. After the first field that is not there, every
// further one is zero and err is set.
type decoder struct {
	buf []byte
	err error
}

func (d *decoder) take(n int) []byte {
	if d.err != nil || n < 0 || n > len(d.buf) {
		d.err = errShort
		return nil
	}
	b := d.buf[:n]
	d.buf = d.buf[n:]
	return b
}

func (d *decoder) uint32() uint32 {
	if b := d.take(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

func (d *decoder) uint64() uint64 {
	if b := d.take(8); b != nil {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

// bytes is valid until the next packet is read.
func (d *decoder) bytes() []byte { return d.take(int(d.uint32())) }

func (d *decoder) string() string { return string(d.bytes()) }

// encoder appends answers; begin and end wrap each in its length.
type encoder struct {
	buf   []byte
	start int
}

func (e *encoder) begin(kind byte, id uint32) {
	e.start = len(e.buf)
	e.buf = append(e.buf, 0, 0, 0, 0, kind)
	e.uint32(id)
}

func (e *encoder) end() {
	binary.BigEndian.PutUint32(e.buf[e.start:], uint32(len(e.buf)-e.start-4))
}

func (e *encoder) uint32(v uint32) { e.buf = binary.BigEndian.AppendUint32(e.buf, v) }
func (e *encoder) uint64(v uint64) { e.buf = binary.BigEndian.AppendUint64(e.buf, v) }

func (e *encoder) string(s string) {
	e.uint32(uint32(len(s)))
	e.buf = append(e.buf, s...)
}
