// Package screen is the model of a terminal's screen: what a terminal would show that had
// read everything a program printed. The agent keeps one for each terminal, so that a guest
// who was cut off gets the same screen again, a second window can share it and the host can
// watch it.
//
// A Screen is fed with Write and never answers, blocks, fails or grows without bound, whatever
// the bytes are. It is drawn in three ways: Redraw brings a terminal of the same size to the
// same state, View is a picture of it as plain rows, and a Painter keeps a terminal of any size
// showing it. Escape sequences are parsed by charmbracelet/x/ansi. It does not reflow lines on a
// resize, as xterm does not either.
package screen
