package agent

import (
	"slices"
	"syscall"
)

const hangUp = syscall.SIGHUP

// tail keeps the last keepBytes that were added.
type tail struct {
	buf []byte
}

func (t *tail) add(p []byte) {
	if len(t.buf)+len(p) > 2*keepBytes {
		t.buf = append(t.buf[:0], t.buf[max(0, len(t.buf)+len(p)-keepBytes):]...)
	}
	t.buf = append(t.buf, p...)
}

// bytes is what is kept, from the start of a line where there is one.
func (t *tail) bytes() []byte {
	b := t.buf[max(0, len(t.buf)-keepBytes):]
	if len(b) < len(t.buf) {
		if i := slices.Index(b, '\n'); i >= 0 {
			b = b[i+1:]
		}
	}
	return slices.Clone(b)
}

// sortBySince orders terminals by when their viewer left.
func sortBySince(all []*terminal) {
	slices.SortFunc(all, func(a, b *terminal) int { return a.since.Compare(b.since) })
}
