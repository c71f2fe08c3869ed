package tui

// rect is a part of the screen.
type rect struct{ x, y, w, h int }

func (r rect) holds(x, y int) bool {
	return x >= r.x && x < r.x+r.w && y >= r.y && y < r.y+r.h
}

// plan says where each pane is; one without a height is not shown.
type plan struct {
	small                                bool // there is no room for anything
	cards, links, sessions, peek, events rect
}

// The smallest screen that shows something, and how much of it is not panes: the top line and
// the two at the bottom.
const (
	minWidth  = 40
	minHeight = 8
	frame     = 3
)

// wants is how many rows the contents of each pane could use, titles left out.
type wants struct{ cards, links, sessions int }

// layout shares a screen of w × h out. Cards and links have the whole width at the top; below
// them lie sessions over events at the left and the guest's terminal at the right. What is
// narrow stacks, what is short leaves the least needed out.
func layout(w, h int, want wants) plan {
	if w < minWidth || h < minHeight {
		return plan{small: true}
	}
	var p plan
	body := h - frame
	y := 1
	take := func(rows int) rect {
		r := rect{0, y, w, min(rows, h-2-y)}
		y += r.h
		return r
	}
	cards := min(1+want.cards, max(2, body/3))
	if body < 10 {
		cards = min(cards, 2)
	}
	p.cards = take(cards)
	rest := body - cards
	switch {
	case rest < 9: // short: links alone, then what is in the selected one
		links := min(max(1+want.links, 3), max(rest-3, 2))
		if rest < 6 {
			links = rest
		}
		p.links = take(links)
		p.sessions = take(rest - links)
	case w < 72:
		p.links = take(min(max(1+want.links, 4), max(rest/3, 4)))
		p.sessions = take(min(max(1+want.sessions, 4), max(rest/3, 4)))
		left := h - 2 - y
		if left >= 12 {
			p.peek = take(left - 5)
		}
		p.events = take(h - 2 - y)
	default:
		p.links = take(min(max(1+want.links, 4), max(rest*2/5, 5)))
		p.split(w, h-2-y, y, want)
	}
	return p
}

// split puts sessions and events at the left of the guest's terminal.
func (p *plan) split(w, h, y int, want wants) {
	left := max(w*2/5, 38)
	if w-left-1 > 100 {
		left = w - 101 // a terminal of a hundred columns is as much as most guests have
	}
	sessions := min(max(1+want.sessions, 4), max(h*3/5, h-12))
	if h-sessions < 3 {
		sessions = h - 3
	}
	p.sessions = rect{0, y, left, sessions}
	p.events = rect{0, y + sessions, left, h - sessions}
	p.peek = rect{left + 1, y, w - left - 1, h}
}
