package tui_test

import (
	"flag"
	"fmt"
	"image/color"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/ansi"

	"github.com/berth-gpu/berth/gateway"
	"github.com/berth-gpu/berth/tui"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares a screen with testdata/NAME.golden.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(path, []byte(got+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got+"\n" != string(want) {
		t.Errorf("%s differs; `make golden` rewrites it. got:\n%s", path, ansi.Strip(got))
	}
}

type size struct{ w, h int }

func (s size) String() string { return fmt.Sprintf("%dx%d", s.w, s.h) }

var sizes = []size{{80, 24}, {120, 40}, {200, 60}}

// screen is a Model with the clock at noon that has seen these overviews.
func screen(t *testing.T, s size, seen []gateway.Overview) *tui.Model {
	t.Helper()
	m := tui.New(t.Context(), tui.Options{Host: &twin{over: sample()}, Still: true, Now: func() time.Time { return noon }})
	m.Update(tea.WindowSizeMsg{Width: s.w, Height: s.h})
	for _, o := range seen {
		m.Update(tui.Load(o))
	}
	return m
}

// press sends keys by their names, and runs what they lead to.
func press(m *tui.Model, keys ...string) {
	for _, k := range keys {
		_, cmd := m.Update(keyMsg(k))
		run(m, cmd)
	}
}

// run runs a command as Bubble Tea would, all that follows included; timers count as not yet up.
func run(m *tui.Model, cmd tea.Cmd) {
	if cmd == nil {
		return
	}
	done := make(chan tea.Msg, 1)
	go func() { done <- cmd() }()
	select {
	case msg := <-done:
		if batch, ok := msg.(tea.BatchMsg); ok {
			for _, c := range batch {
				run(m, c)
			}
			return
		}
		_, next := m.Update(msg)
		run(m, next)
	case <-time.After(50 * time.Millisecond):
	}
}

var special = map[string]rune{
	"enter": tea.KeyEnter, "esc": tea.KeyEscape, "tab": tea.KeyTab, "up": tea.KeyUp, "down": tea.KeyDown, "backspace": tea.KeyBackspace,
	"home": tea.KeyHome, "end": tea.KeyEnd, "left": tea.KeyLeft, "right": tea.KeyRight, "pgdown": tea.KeyPgDown,
}

func keyMsg(name string) tea.KeyPressMsg {
	if r, ok := special[name]; ok {
		return tea.KeyPressMsg{Code: r}
	}
	if base, ok := strings.CutPrefix(name, "ctrl+"); ok {
		return tea.KeyPressMsg{Code: rune(base[0]), Mod: tea.ModCtrl}
	}
	r := []rune(name)[0]
	return tea.KeyPressMsg{Code: r, Text: name}
}

func TestScreens(t *testing.T) {
	pages := []struct {
		name string
		seen []gateway.Overview
		keys []string
	}{
		{"main", moments(200), nil},
		{"empty", []gateway.Overview{{Now: noon, Host: "gpubox", Machine: sample().Machine}}, nil},
		{"connecting", nil, nil},
		{"sessions", moments(200), []string{"tab", "down"}},
		{"revoke", moments(200), []string{"r"}},
		{"filter", moments(200), []string{"/", "g", "r"}},
		{"help", moments(200), []string{"?"}},
		{"usage", moments(200), []string{"u"}},
	}
	for _, p := range pages {
		for _, s := range sizes {
			t.Run(p.name+"-"+s.String(), func(t *testing.T) {
				m := screen(t, s, p.seen)
				press(m, p.keys...)
				got := m.View().Content
				checkShape(t, got, s)
				golden(t, p.name+"-"+s.String(), got)
			})
		}
	}
}

func TestColours(t *testing.T) {
	for name, profile := range map[string]colorprofile.Profile{"16": colorprofile.ANSI, "none": colorprofile.Ascii} {
		for _, s := range sizes {
			t.Run(name+"-"+s.String(), func(t *testing.T) {
				m := screen(t, s, moments(200))
				m.Update(tea.ColorProfileMsg{Profile: profile})
				got := m.View().Content
				checkShape(t, got, s)
				golden(t, "colours"+name+"-"+s.String(), got)
				if name == "none" && strings.Contains(got, "38;") {
					t.Error("colours on a terminal without")
				}
			})
		}
	}
}

func TestLight(t *testing.T) {
	m := screen(t, sizes[0], moments(200))
	m.Update(tea.BackgroundColorMsg{Color: color.White})
	golden(t, "light-80x24", m.View().Content)
}

// checkShape holds a screen to its size: h lines of w columns each, whichever way they are
// measured, with no codes but colours.
func checkShape(t *testing.T, got string, s size) {
	t.Helper()
	lines := strings.Split(got, "\n")
	if len(lines) != s.h {
		t.Fatalf("%d lines, want %d", len(lines), s.h)
	}
	for i, line := range lines {
		if w, wc := ansi.StringWidth(line), ansi.StringWidthWc(line); w != s.w || wc != s.w {
			t.Errorf("line %d is %d or %d columns wide, want %d: %q", i, w, wc, s.w, line)
		}
		if rest := colour.ReplaceAllString(line, ""); strings.ContainsFunc(rest, func(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 }) {
			t.Errorf("line %d has control codes: %q", i, rest)
		}
	}
}

var colour = regexp.MustCompile("\x1b\\[[0-9;]*m")

func TestEverySizeWithNastyNames(t *testing.T) {
	o := sample()
	for i, name := range nastyNames() {
		l := o.Links[i%3]
		l.ID, l.Name = fmt.Sprint("id", i), name
		l.Sessions = slices.Clone(l.Sessions)
		for j := range l.Sessions {
			l.Sessions[j].Client, l.Sessions[j].Channels = name, []string{"exec " + name, "forward " + name}
		}
		o.Links = append(o.Links, l)
		o.Events = append(o.Events, gateway.Event{Time: noon, Event: "link.made", Link: l.ID, Detail: name, Address: name})
	}
	for w := 0; w < 210; w += 7 {
		for h := 0; h < 70; h += 3 {
			m := screen(t, size{w, h}, []gateway.Overview{o})
			for range 4 {
				press(m, "down", "down", "down", "tab")
				if w > 0 && h > 0 {
					checkShape(t, m.View().Content, size{w, h})
				}
				if t.Failed() {
					t.Fatalf("at %d×%d", w, h)
				}
			}
		}
	}
}
