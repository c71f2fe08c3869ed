package screen

import "bytes"

// history is what scrolled off the top, line by line, each ended by a line feed and drawn from
// the default style to the default style.
type history struct {
	buf []byte
}

func (h *history) add(t *tables, l line) {
	if len(h.buf) > 2*HistoryBytes {
		h.buf = append(h.buf[:0], h.lines()...)
	}
	h.buf = append(t.row(h.buf, l), '\n')
}

// lines returns the newest whole lines.
func (h *history) lines() []byte {
	b := h.buf
	if len(b) > HistoryBytes {
		b = b[len(b)-HistoryBytes:]
		b = b[bytes.IndexByte(b, '\n')+1:]
	}
	return b
}

// row appends line l as text: from the default style and back to it.
func (t *tables) row(b []byte, l line) []byte {
	st := uint32(0)
	for i := range l {
		if l[i].r == wideTail {
			continue
		}
		if l[i].st != st {
			b = t.styles[l[i].st].appendTo(b, &t.styles[st])
			st = l[i].st
		}
		b = t.text(b, l[i].r)
	}
	return (&style{}).appendTo(b, &t.styles[st])
}
