package ws

import "io"

// A reader's buffer begins small and doubles whenever one read fills it, so that three thousand
// idle guests cost little and a busy one gets long reads.
const (
	firstBuffer = 1 << 10
	lastBuffer  = 64 << 10
)

// buffer reads ahead.
type buffer struct {
	src        io.Reader
	b          []byte
	start, end int
}

// peek returns at least n bytes without taking them.
func (r *buffer) peek(n int) ([]byte, error) {
	for r.end-r.start < n {
		if err := r.fill(n); err != nil {
			return nil, err
		}
	}
	return r.b[r.start:r.end], nil
}

func (r *buffer) skip(n int) { r.start += n }

// read takes what is there, or reads straight into p where p is the larger.
func (r *buffer) read(p []byte) (int, error) {
	if r.start == r.end {
		if len(p) >= len(r.b) && len(p) >= firstBuffer {
			return r.src.Read(p)
		}
		if err := r.fill(1); err != nil {
			return 0, err
		}
	}
	n := copy(p, r.b[r.start:r.end])
	r.start += n
	return n, nil
}

// fill reads once more; there is room for n bytes from start afterwards.
func (r *buffer) fill(n int) error {
	if r.b == nil {
		r.b = make([]byte, firstBuffer)
	}
	switch {
	case r.start == r.end:
		r.start, r.end = 0, 0
	case len(r.b)-r.start < n:
		r.end = copy(r.b, r.b[r.start:r.end])
		r.start = 0
	}
	free := len(r.b) - r.end
	k, err := r.src.Read(r.b[r.end:])
	r.end += k
	if k == free && len(r.b) < lastBuffer {
		grown := make([]byte, 2*len(r.b))
		r.end = copy(grown, r.b[r.start:r.end])
		r.start, r.b = 0, grown
	}
	if k > 0 {
		return nil
	}
	if err == nil {
		err = io.ErrNoProgress
	}
	return err
}
