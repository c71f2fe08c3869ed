package tui

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// clean makes a text of someone else's safe to draw: no escape codes, no control characters,
// nothing that turns the direction of writing, and no cluster whose width terminals disagree
// about. What is left takes the same number of columns everywhere.
func clean(s string) string {
	if plain(s) {
		return s
	}
	s = ansi.Strip(strings.ToValidUTF8(s, "?"))
	var b strings.Builder
	for len(s) > 0 {
		cluster, _ := ansi.FirstGraphemeCluster(s, ansi.GraphemeWidth)
		if cluster == "" {
			break
		}
		s = s[len(cluster):]
		b.WriteString(cleanCluster(cluster))
	}
	return b.String()
}

// plain reports whether s is printable ASCII, as nearly all is.
func plain(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// maxCluster is how many runes may make up one character: a letter with two marks.
const maxCluster = 3

// cleanCluster returns what one character as a person sees it is drawn as.
func cleanCluster(c string) string {
	first, _ := utf8.DecodeRuneInString(c)
	switch {
	case first >= 0x1F1E6 && first <= 0x1F1FF: // flags: as the letters they stand for
		return strings.Map(func(r rune) rune { return r - 0x1F1E6 + 'A' }, c)
	case unicode.IsSpace(first):
		return " "
	case !unicode.IsGraphic(first) || unicode.Is(unicode.Cf, first) || unicode.IsMark(first):
		if unicode.Is(unicode.Cf, first) || unicode.IsMark(first) {
			return ""
		}
		return "?"
	}
	joined := strings.IndexFunc(c, func(r rune) bool {
		return !unicode.IsGraphic(r) || unicode.Is(unicode.Cf, r) || r >= 0xFE00 && r <= 0xFE0F
	}) >= 0
	if !joined && utf8.RuneCountInString(c) <= maxCluster && sameWidth(c) {
		return c
	}
	if alone := string(first); sameWidth(alone) && ansi.StringWidth(alone) > 0 {
		return alone
	}
	return "?"
}

// sameWidth reports whether both kinds of terminals give c the same number of columns.
func sameWidth(c string) bool { return ansi.StringWidth(c) == ansi.StringWidthWc(c) }

// width is how many columns s takes; s may be styled.
func width(s string) int {
	if plain(s) {
		return len(s)
	}
	return ansi.StringWidth(s)
}

// fit cuts s with an ellipsis or fills it up, to exactly n columns. s may be styled.
func fit(s string, n int) string {
	if n <= 0 {
		return ""
	}
	w := width(s)
	if w > n {
		s = ansi.Truncate(s, n, "…")
		w = width(s)
	}
	return s + strings.Repeat(" ", n-w)
}

// fitRight is fit with the text at the right end.
func fitRight(s string, n int) string {
	if w := width(s); w < n {
		return strings.Repeat(" ", n-w) + s
	}
	return fit(s, n)
}

// size writes a number of bytes in at most five columns, counted by 1000 as disks and
// networks are.
func size(n int64) string {
	if n < 1000 {
		return fmt.Sprintf("%dB", max(n, 0))
	}
	v := float64(n)
	for _, unit := range "kMGTP" {
		v /= 1000
		if v < 9.95 {
			return fmt.Sprintf("%.1f%c", v, unit)
		}
		if v < 999.5 {
			return fmt.Sprintf("%.0f%c", v, unit)
		}
	}
	return "∞"
}

// binSize writes memory, which is counted by 1024: 12.3 of 24 as 12.3G.
func binSize(n int64) string {
	v := float64(max(n, 0))
	for _, unit := range []string{"B", "K", "M", "G", "T"} {
		if v < 9.95 && unit != "B" && unit != "K" {
			return fmt.Sprintf("%.1f%s", v, unit)
		}
		if v < 999.5 {
			return fmt.Sprintf("%.0f%s", v, unit)
		}
		v /= 1024
	}
	return fmt.Sprintf("%.0fP", v)
}

// span writes a duration in at most six columns: 43s, 12m, 5h12m, 3d4h.
func span(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	case d < 100*24*time.Hour:
		return fmt.Sprintf("%dd%dh", int(d.Hours())/24, int(d.Hours())%24)
	default:
		return fmt.Sprintf("%dd", int(d.Hours())/24)
	}
}

// exact writes a time so that it can be told to somebody.
func exact(t time.Time) string { return t.Format("Mon 2 Jan 15:04:05 MST") }

// shortKey keeps enough of a fingerprint to compare it.
func shortKey(fingerprint string, n int) string {
	return fit(strings.TrimPrefix(clean(fingerprint), "SHA256:"), n)
}
