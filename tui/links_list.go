package tui

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/berth-gpu/berth/gateway"
	"github.com/berth-gpu/berth/gateway/link"
)

// visible returns the links that are shown, in their order.
func (m *Model) visible() []gateway.LinkView {
	var list []gateway.LinkView
	for _, l := range m.over.Links {
		if (l.State != link.Ended || !m.hideEnded) && m.filter.matches(l) {
			list = append(list, l)
		}
	}
	slices.SortStableFunc(list, func(a, b gateway.LinkView) int {
		return cmp.Or(boolRank(a.State == link.Ended, b.State == link.Ended), m.order.compare(a, b))
	})
	return list
}

func boolRank(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

func (o order) compare(a, b gateway.LinkView) int {
	switch o {
	case byName:
		return cmp.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name))
	case byTime:
		return deadline(a).Compare(deadline(b))
	case byBytes:
		return cmp.Compare(traffic(b), traffic(a))
	default:
		return a.CreatedAt.Compare(b.CreatedAt)
	}
}

// deadline is when the link ends by itself.
func deadline(l gateway.LinkView) time.Time {
	if l.EndsAt != nil {
		return *l.EndsAt
	}
	return l.ClaimBy
}

func traffic(l gateway.LinkView) int64 {
	in, out := linkBytes(l)
	return in + out
}

// linkBytes is what went through a link's open sessions.
func linkBytes(l gateway.LinkView) (in, out int64) {
	for _, s := range l.Sessions {
		in, out = in+s.BytesIn, out+s.BytesOut
	}
	return in, out
}

// filter is the text that shown links contain.
type filter struct {
	text   string
	typing bool
}

func (f filter) matches(l gateway.LinkView) bool {
	if f.text == "" {
		return true
	}
	want := strings.ToLower(f.text)
	for _, s := range append([]string{l.ID, l.Name, string(l.State), l.Guest, l.Image, l.GPU}, addresses(l)...) {
		if strings.Contains(strings.ToLower(s), want) {
			return true
		}
	}
	return false
}

func addresses(l gateway.LinkView) []string {
	var list []string
	for _, s := range l.Sessions {
		list = append(list, s.Address, s.Door, s.Client)
	}
	return list
}

// keep moves the selection to where it makes sense after the list has changed: the same link
// if it is there, else its neighbour.
func (m *Model) keep(before []gateway.LinkView) {
	list := m.visible()
	at := slices.IndexFunc(list, func(l gateway.LinkView) bool { return l.ID == m.link })
	if at < 0 {
		was := slices.IndexFunc(before, func(l gateway.LinkView) bool { return l.ID == m.link })
		at = min(max(was, 0), len(list)-1)
	}
	if at < 0 {
		m.link = ""
		return
	}
	m.link = list[at].ID
}

// move moves the selection by n rows, in the pane that has the keys.
func (m *Model) move(n int) {
	if m.pane == paneSessions {
		l, _ := m.selected()
		at := slices.IndexFunc(l.Sessions, func(s gateway.SessionView) bool { return s.ID == m.session })
		if len(l.Sessions) > 0 {
			m.session = l.Sessions[min(max(max(at, 0)+n, 0), len(l.Sessions)-1)].ID
		}
		return
	}
	list := m.visible()
	at := slices.IndexFunc(list, func(l gateway.LinkView) bool { return l.ID == m.link })
	if len(list) > 0 {
		m.link, m.session = list[min(max(max(at, 0)+n, 0), len(list)-1)].ID, ""
	}
}
