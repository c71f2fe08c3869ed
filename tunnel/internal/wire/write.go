package wire

import "encoding/binary"

// le is the byte order of everything in this protocol.
var le = binary.LittleEndian

// Element codes of list pointers.
const (
	codeByte      = 2
	codePointer   = 6
	codeComposite = 7
)

// builder writes one segment. Objects are appended, so every pointer points forward.
// Positions are byte offsets into the segment.
type builder struct{ b []byte }

// alloc appends words zeroed words and returns where they start.
func (w *builder) alloc(words int) int {
	at := len(w.b)
	w.b = append(w.b, make([]byte, words*8)...)
	return at
}

// structure appends a struct and stores its pointer at at. It returns where the struct's data
// and its pointers start.
func (w *builder) structure(at, dataWords, pointers int) (data, ptrs int) {
	to := w.alloc(dataWords + pointers)
	offset := (to - at - 8) / 8
	if dataWords+pointers == 0 {
		offset = -1 // an empty struct points at its own pointer, or it would read as null
	}
	le.PutUint64(w.b[at:], uint64(uint32(offset)<<2)|uint64(dataWords)<<32|uint64(pointers)<<48)
	return to, to + dataWords*8
}

// list stores a pointer to a list that starts at to.
func (w *builder) list(at, to int, code, count uint64) {
	offset := (to - at - 8) / 8
	le.PutUint64(w.b[at:], 1|uint64(uint32(offset)<<2)|code<<32|count<<35)
}

// data stores bytes. Nil stays a null pointer.
func (w *builder) data(at int, p []byte) {
	if p == nil {
		return
	}
	to := w.alloc((len(p) + 7) / 8)
	copy(w.b[to:], p)
	w.list(at, to, codeByte, uint64(len(p)))
}

// text stores a string with its trailing zero. An empty string stays a null pointer.
func (w *builder) text(at int, s string) {
	if s != "" {
		w.data(at, append([]byte(s), 0))
	}
}

// texts stores a list of strings.
func (w *builder) texts(at int, list []string) {
	to := w.alloc(len(list))
	w.list(at, to, codePointer, uint64(len(list)))
	for i, s := range list {
		w.text(to+8*i, s)
	}
}

// structures stores a list of n structs of one shape and returns where the first one starts.
func (w *builder) structures(at, n, dataWords, pointers int) int {
	size := n * (dataWords + pointers)
	to := w.alloc(1 + size)
	w.list(at, to, codeComposite, uint64(size))
	le.PutUint64(w.b[to:], uint64(uint32(n)<<2)|uint64(dataWords)<<32|uint64(pointers)<<48)
	return to + 8
}

// frame returns the segment with the header that stands before it on a stream.
func (w *builder) frame() []byte {
	out := make([]byte, 8, 8+len(w.b))
	le.PutUint32(out[4:], uint32(len(w.b)/8))
	return append(out, w.b...)
}
