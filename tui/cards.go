package tui

import (
	"fmt"
	"strings"
)

// cardRows is how many rows the cards pane could use.
func (m *Model) cardRows() int { return 3 }

// cardsPane shows the cards, or the machine where it has none.
func (m *Model) cardsPane(r rect) []string {
	return m.titled(r, m.paneTitle("Machine", false), m.styles.dim.paint("no GPU"), m.machineRows(r.w, r.h-1))
}

// machineRows show processor, memory and disk.
func (m *Model) machineRows(w, h int) []string {
	if !m.loaded {
		return nil
	}
	s, mach := m.styles, m.over.Machine
	barWidth := min(max((w-50)/2, 8), 40)
	line := func(name, shown string, part float64, note string) string {
		return " " + s.dim.paint(fit(name, 7)) + shown + " " + fitRight(fmt.Sprintf("%.0f%%", 100*part), 4) + "  " + s.dim.paint(note)
	}
	st := s.accent
	rows := []string{
		line("cpu", st.paint(graph(m.past["cpu"], barWidth)), mach.CPU, fmt.Sprintf("%d processors, load %.2f", mach.CPUs, mach.Load)),
		line("memory", bar(share(mach.Memory, mach.MemoryAll), barWidth, s.full(share(mach.Memory, mach.MemoryAll)), s.track),
			share(mach.Memory, mach.MemoryAll), binSize(mach.Memory)+" of "+binSize(mach.MemoryAll)),
		line("disk", bar(share(mach.Disk, mach.DiskAll), barWidth, s.full(share(mach.Disk, mach.DiskAll)), s.track),
			share(mach.Disk, mach.DiskAll), size(mach.DiskAll-mach.Disk)+"B free"),
	}
	if h < len(rows) { // one line has to do
		return []string{strings.TrimRight(fmt.Sprintf(" %s %3.0f%%   %s %3.0f%%   %s %3.0f%%", s.dim.paint("cpu"), 100*mach.CPU,
			s.dim.paint("memory"), 100*share(mach.Memory, mach.MemoryAll), s.dim.paint("disk"), 100*share(mach.Disk, mach.DiskAll)), " ")}
	}
	return rows
}

func share(part, all int64) float64 {
	if all <= 0 {
		return 0
	}
	return float64(part) / float64(all)
}

// full is the style of a bar of what runs out: calm until there is little left.
func (s styles) full(part float64) style {
	switch {
	case part > 0.97:
		return s.bad
	case part > 0.90:
		return s.warn
	}
	return s.accent
}
