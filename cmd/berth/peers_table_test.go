//go:build peers

package main

import (
	"fmt"
	"strings"
)

// goal is what a row is held against. The zero goal is none.
type goal struct {
	atLeast, atMost float64 // of Berth's value over sshd's
	within          float64 // Berth's value itself, in the row's unit
}

func (g goal) String() string {
	switch {
	case g.atLeast > 0:
		return fmt.Sprintf("≥ %.1fx", g.atLeast)
	case g.atMost > 0:
		return fmt.Sprintf("≤ %.2gx", g.atMost)
	case g.within > 0:
		return fmt.Sprintf("≤ %g", g.within)
	}
	return ""
}

// row is a measure's medians.
type row struct {
	*measure
	berth, sshd float64
}

func (r row) ratio() float64 { return r.berth / r.sshd }

// met says whether the goal was reached, or nothing where there is none.
func (r row) met() string {
	g := r.goal
	switch {
	case g == goal{}:
		return ""
	case g.atLeast > 0 && r.ratio() < g.atLeast, g.atMost > 0 && r.ratio() > g.atMost, g.within > 0 && r.berth > g.within:
		return "no"
	}
	return "yes"
}

func (r row) line() string {
	return fmt.Sprintf("%-44s %-6s %9s %9s %7.2fx  %-8s %s", r.name, r.unit, number(r.berth), number(r.sshd), r.ratio(), r.goal, r.met())
}

func number(v float64) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	default:
		return fmt.Sprintf("%.2f", v)
	}
}

// table is what a run prints and keeps.
type table struct {
	head, before, after string
	rows                []row
}

// String is the table as text.
func (t *table) String() string {
	var out strings.Builder
	fmt.Fprintln(&out, "Berth beside OpenSSH's sshd in an identical container (sshd with host networking), one OpenSSH client")
	fmt.Fprintln(&out, "with its default choices, runs taken in turns, medians. Ratios are Berth's value over sshd's.")
	fmt.Fprintf(&out, "%s; load %s before and %s after\n\n", t.head, t.before, t.after)
	fmt.Fprintf(&out, "%-44s %-6s %9s %9s %8s  %-8s %s\n", "", "", "berth", "sshd", "ratio", "goal", "met")
	for _, r := range t.rows {
		fmt.Fprintln(&out, strings.TrimRight(r.line(), " "))
	}
	return out.String()
}
