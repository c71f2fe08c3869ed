package tui

import (
	"fmt"
	"time"

	"github.com/berth-gpu/berth/gateway"
)

// pageBody draws a page that is read, from its scroll position on.
func (m *Model) pageBody(h int) []string {
	lines := m.pageLines()
	top := min(m.scroll, max(len(lines)-(h-1), 0))
	note := ""
	if len(lines) > h-1 {
		note = m.styles.dim.paint(fmt.Sprintf("%d–%d of %d", top+1, min(top+h-1, len(lines)), len(lines)))
	}
	title := map[page]string{pageHelp: "Keys", pageReceipts: "Receipts", pageUsage: "Usage"}[m.page]
	return m.titled(rect{0, 1, m.w, h}, m.paneTitle(title, true), note, lines[top:])
}

func (m *Model) pageLines() []string {
	switch m.page {
	case pageHelp:
		return m.helpLines()
	case pageReceipts:
		return m.receiptLines()
	case pageUsage:
		return m.usageLines()
	default:
		return nil
	}
}

// helpLines print the key map.
func (m *Model) helpLines() []string {
	s := m.styles
	var lines []string
	group := ""
	for _, b := range m.keys {
		if b.group != group {
			group = b.group
			lines = append(lines, "", " "+s.strong.paint(group))
		}
		lines = append(lines, "   "+s.accent.paint(fit(b.Help().Key, 12))+" "+b.Help().Desc)
	}
	return append(lines[1:], "", s.dim.paint(" The mouse selects; its wheel moves."))
}

// receiptLines show what was cleaned, the newest first.
func (m *Model) receiptLines() []string {
	s := m.styles
	if len(m.receipts) == 0 {
		return []string{s.dim.paint(" none yet: each link leaves one when it has ended")}
	}
	var lines []string
	for i := len(m.receipts) - 1; i >= 0; i-- {
		r := m.receipts[i]
		lines = append(lines, " "+s.strong.paint(clean(r.Name))+"  "+clean(string(r.Reason))+s.dim.paint("  "+exact(r.Ended.In(m.now().Location()))))
		for _, item := range r.Items {
			mark := s.good.paint("pass")
			if !item.OK {
				mark = s.bad.paint("FAIL")
			}
			lines = append(lines, "   "+mark+"  "+fit(clean(item.Name), 16)+" "+s.dim.paint(clean(item.Detail)))
		}
		lines = append(lines, "")
	}
	return lines
}

var usageColumns = []column{
	{name: "link", min: 10, max: 28},
	{name: "gpu", min: 5, max: 14, rank: 1},
	{name: "since claim", min: 11, max: 11, right: true},
	{name: "in", min: 7, max: 7, right: true},
	{name: "out", min: 7, max: 7, right: true},
}

// usageLines show time and bytes of each link.
func (m *Model) usageLines() []string {
	widths := fitColumns(usageColumns, m.w-2)
	cells := make([]string, len(usageColumns))
	for i, c := range usageColumns {
		cells[i] = m.styles.dim.paint(c.name)
	}
	lines := []string{" " + row(usageColumns, widths, cells)}
	for _, l := range m.over.Links {
		in, out := linkBytes(l)
		lines = append(lines, " "+row(usageColumns, widths, []string{clean(l.Name), gpuText(l), m.usedTime(l), size(in), size(out)}))
	}
	return lines
}

func (m *Model) usedTime(l gateway.LinkView) string {
	if l.ClaimedAt == nil {
		return "–"
	}
	var end time.Time
	if end = m.now(); l.EndsAt != nil && l.EndsAt.Before(end) {
		end = *l.EndsAt
	}
	return span(end.Sub(*l.ClaimedAt))
}
