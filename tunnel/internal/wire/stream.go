package wire

import (
	"fmt"
	"io"
)

// Over QUIC each stream begins with one of these signatures.
var (
	SignatureData = [6]byte{0x0a, 0x36, 0xcd, 0x12, 0xa1, 0x3e}
	SignatureRPC  = [6]byte{0x52, 0xbb, 0x82, 0x5c, 0xdb, 0x65}
)

// StreamVersion follows a data stream's signature.
const StreamVersion = "01"

// StreamKind says what a data stream carries.
type StreamKind uint16

// Kinds of data streams.
const (
	StreamHTTP      StreamKind = 0
	StreamWebSocket StreamKind = 1
	StreamTCP       StreamKind = 2
)

// Pair is one piece of a stream's metadata.
type Pair struct{ Key, Value string }

// StreamRequest opens a data stream over QUIC.
type StreamRequest struct {
	Dest string // full URL
	Kind StreamKind
	Meta []Pair
}

// StreamResponse answers a StreamRequest.
type StreamResponse struct {
	Err  string
	Meta []Pair
}

// EncodeStreamRequest writes signature, version and request.
func EncodeStreamRequest(r StreamRequest) []byte {
	w := &builder{}
	data, ptr := w.structure(w.alloc(1), 1, 2)
	le.PutUint16(w.b[data:], uint16(r.Kind))
	w.text(ptr, r.Dest)
	w.pairs(ptr+8, r.Meta)
	return preamble(w)
}

// EncodeStreamResponse writes signature, version and response.
func EncodeStreamResponse(r StreamResponse) []byte {
	w := &builder{}
	_, ptr := w.structure(w.alloc(1), 0, 2)
	w.text(ptr, r.Err)
	w.pairs(ptr+8, r.Meta)
	return preamble(w)
}

func preamble(w *builder) []byte {
	out := append(SignatureData[:len(SignatureData):len(SignatureData)], StreamVersion...)
	return append(out, w.frame()...)
}

func (w *builder) pairs(at int, list []Pair) {
	first := w.structures(at, len(list), 0, 2)
	for i, p := range list {
		w.text(first+16*i, p.Key)
		w.text(first+16*i+8, p.Value)
	}
}

// ReadSignature reads the six bytes that every stream begins with.
func ReadSignature(r io.Reader) (sig [6]byte, err error) {
	_, err = io.ReadFull(r, sig[:])
	return sig, err
}

// readVersion reads and checks what follows a data signature.
func readVersion(r io.Reader) error {
	var v [2]byte
	if _, err := io.ReadFull(r, v[:]); err != nil {
		return unexpected(err)
	}
	if string(v[:]) != StreamVersion {
		return fmt.Errorf("%w: stream version %q", ErrMalformed, v[:])
	}
	return nil
}

// ReadStreamRequest reads a request whose signature was read already.
func ReadStreamRequest(r io.Reader) (StreamRequest, error) {
	root, err := readAfterSignature(r)
	if err != nil {
		return StreamRequest{}, fmt.Errorf("stream request: %w", err)
	}
	rd := reading{}
	req := StreamRequest{Dest: rd.text(root, 0), Kind: StreamKind(root.u16(0)), Meta: rd.pairs(root, 1)}
	if rd.err != nil {
		return StreamRequest{}, fmt.Errorf("stream request: %w", rd.err)
	}
	return req, nil
}

// ReadStreamResponse reads signature, version and response.
func ReadStreamResponse(r io.Reader) (StreamResponse, error) {
	sig, err := ReadSignature(r)
	if err != nil {
		return StreamResponse{}, fmt.Errorf("stream response: %w", err)
	}
	if sig != SignatureData {
		return StreamResponse{}, fmt.Errorf("stream response: %w: signature %x", ErrMalformed, sig)
	}
	root, err := readAfterSignature(r)
	if err != nil {
		return StreamResponse{}, fmt.Errorf("stream response: %w", err)
	}
	rd := reading{}
	resp := StreamResponse{Err: rd.text(root, 0), Meta: rd.pairs(root, 1)}
	if rd.err != nil {
		return StreamResponse{}, fmt.Errorf("stream response: %w", rd.err)
	}
	return resp, nil
}

func readAfterSignature(r io.Reader) (view, error) {
	if err := readVersion(r); err != nil {
		return view{}, err
	}
	m, err := readMessage(r)
	if err != nil {
		return view{}, unexpected(err)
	}
	return m.root()
}

func (r *reading) pairs(v view, i int) []Pair {
	list, err := v.list(i)
	r.keep(err)
	out := make([]Pair, 0, len(list))
	for _, e := range list {
		out = append(out, Pair{r.text(e, 0), r.text(e, 1)})
	}
	return out
}
