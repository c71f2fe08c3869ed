package tui

// column is one column of a table.
type column struct {
	name  string
	min   int // narrower than this it is left out
	max   int // it takes no more
	right bool
	rank  int // the highest ranks are left out first
}

// gap is what lies between two columns.
const gap = 2

// fitColumns shares w columns out: those of low rank first, each with its minimum, then what
// is left over goes to those that can use it. 0: left out.
func fitColumns(cols []column, w int) []int {
	widths := make([]int, len(cols))
	left := w + gap
	for rank := 0; rank <= highest(cols); rank++ {
		for i, c := range cols {
			if c.rank == rank && c.min+gap <= left {
				widths[i] = c.min
				left -= c.min + gap
			}
		}
	}
	for grown := true; grown && left > 0; {
		grown = false
		for i, c := range cols {
			if widths[i] > 0 && widths[i] < c.max && left > 0 {
				widths[i]++
				left--
				grown = true
			}
		}
	}
	return widths
}

func highest(cols []column) int {
	top := 0
	for _, c := range cols {
		top = max(top, c.rank)
	}
	return top
}

// row writes cells, which may be styled, in their columns.
func row(cols []column, widths []int, cells []string) string {
	line := ""
	for i, c := range cols {
		if widths[i] == 0 {
			continue
		}
		if line != "" {
			line += "  "
		}
		if c.right {
			line += fitRight(cells[i], widths[i])
		} else {
			line += fit(cells[i], widths[i])
		}
	}
	return line
}
