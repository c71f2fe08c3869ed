package screen

import "unicode/utf8"

// cell is one place of the screen. r is 0 where nothing was printed, wideTail behind a wide
// character, and above utf8.MaxRune where a cluster of several runes stands there.
type cell struct {
	r  rune
	st uint32 // in the tables' styles
}

const wideTail rune = -1

// firstCluster is the rune that stands for the first entry of tables.clusters.
const firstCluster = utf8.MaxRune + 1

// maxCluster bounds what can be piled on one cell, in bytes.
const maxCluster = 64

// tables hold what cells share. Entries are added, and dropped all together by a sweep when
// there are many.
type tables struct {
	styles   []style // the first is the default
	ids      map[style]uint32
	clusters []string
	limit    int // of both, before the next sweep
}

const minTables = 1024

func newTables() tables {
	return tables{styles: []style{{}}, limit: minTables}
}

// id returns the number of st.
func (t *tables) id(st style) uint32 {
	if st == (style{}) {
		return 0
	}
	if n, ok := t.ids[st]; ok {
		return n
	}
	if t.ids == nil {
		t.ids = make(map[style]uint32)
	}
	n := uint32(len(t.styles))
	t.styles = append(t.styles, st)
	t.ids[st] = n
	return n
}

// text returns what the rune of a cell stands for; a blank is a space.
func (t *tables) text(b []byte, r rune) []byte {
	switch {
	case r == wideTail:
		return b
	case r == 0:
		return append(b, ' ')
	case r >= firstCluster:
		return append(b, t.clusters[r-firstCluster]...)
	default:
		return utf8.AppendRune(b, r)
	}
}

// combine returns the rune for r with mark on it.
func (t *tables) combine(r, mark rune) rune {
	text := utf8.AppendRune(t.text(nil, r), mark)
	if len(text) > maxCluster {
		return r
	}
	t.clusters = append(t.clusters, string(text))
	return firstCluster + rune(len(t.clusters)-1)
}

func (t *tables) full() bool { return max(len(t.styles), len(t.clusters)) >= t.limit }

// sweep keeps only what the given lines still use. Their cells are renumbered.
func (t *tables) sweep(grids ...*grid) {
	old := *t
	*t = newTables()
	for _, g := range grids {
		for _, l := range g.lines {
			for i := range l {
				c := &l[i]
				c.st = t.id(old.styles[c.st])
				if c.r >= firstCluster {
					t.clusters = append(t.clusters, old.clusters[c.r-firstCluster])
					c.r = firstCluster + rune(len(t.clusters)-1)
				}
			}
		}
	}
	t.limit = max(minTables, 2*len(t.styles), 2*len(t.clusters))
}
