//go:build integration

package main

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// tmux runs the windows of a story: it is the terminal in which a person sits, and one that we
// did not write.
func tmux(ts *testscript.TestScript, args ...string) (string, error) {
	cmd := exec.Command("tmux", append([]string{"-S", ts.MkAbs("tmux"), "-f", "/dev/null"}, args...)...)
	cmd.Env = append(os.Environ(), "TERM=xterm-256color")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// cmdTerm: term NAME COLSxROWS COMMAND… opens a window of that size and runs COMMAND in it. The
// window stays when the command ends.
func cmdTerm(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 3 {
		ts.Fatalf("usage: term NAME COLSxROWS COMMAND…")
	}
	cols, rows, ok := strings.Cut(args[1], "x")
	if !ok {
		ts.Fatalf("term: %q is no size", args[1])
	}
	command := strings.Join(args[2:], " ")
	if first := gatewayOf(ts); !first.tmux {
		first.tmux = true
		ts.Defer(func() { _, _ = tmux(ts, "kill-server") })
		if out, err := tmux(ts, "start-server", ";", "set", "-s", "exit-empty", "off"); err != nil {
			ts.Fatalf("term: %v: %s", err, out)
		}
	}
	out, err := tmux(ts, "new-session", "-d", "-s", args[0], "-x", cols, "-y", rows, "-e", "CFG="+ts.Getenv("CFG"), "-e", "PATH="+ts.Getenv("PATH"),
		"-e", "HOME="+ts.MkAbs("."), "-e", "BERTH_STATE="+ts.Getenv("STATE"), "-c", ts.MkAbs("."), "sh", "-c", command+`; echo "[ended $?]"; exec sleep 1000`)
	if err != nil {
		ts.Fatalf("term: %v: %s", err, out)
	}
	for _, set := range [][]string{{"status", "off"}, {"history-limit", "5000"}} {
		_, _ = tmux(ts, append([]string{"set", "-t", args[0]}, set...)...)
	}
	if out, err := tmux(ts, "resize-window", "-t", args[0], "-x", cols, "-y", rows); err != nil {
		ts.Fatalf("term: %v: %s", err, out)
	}
}

// cmdKeys: keys NAME KEYS… types into a window: names of keys, as Enter or C-c, or -l and text.
func cmdKeys(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: keys NAME KEYS…")
	}
	if out, err := tmux(ts, append([]string{"send-keys", "-t", args[0]}, args[1:]...)...); err != nil {
		ts.Fatalf("keys: %v: %s", err, out)
	}
}

// capture is what a window shows: its rows with their colours, and the state that is not on them.
func capture(ts *testscript.TestScript, name string) (string, error) {
	text, err := tmux(ts, "capture-pane", "-p", "-e", "-t", name)
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, text)
	}
	const state = "cursor #{cursor_x},#{cursor_y} shown #{cursor_flag} alt #{alternate_on} keys #{keypad_cursor_flag}#{keypad_flag}" +
		" mouse #{mouse_standard_flag}#{mouse_button_flag}#{mouse_sgr_flag} insert #{insert_flag} wrap #{wrap_flag} region #{scroll_region_upper}-#{scroll_region_lower} title #{pane_title}"
	more, err := tmux(ts, "display-message", "-p", "-t", name, state)
	return text + more, err
}

// cmdShows: shows NAME REGEXP waits until a window shows it; with ! until it does not.
func cmdShows(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: shows NAME REGEXP")
	}
	re, err := regexp.Compile(args[1])
	ts.Check(err)
	var last string
	if !eventually(20*time.Second, func() bool {
		text, err := tmux(ts, "capture-pane", "-p", "-t", args[0])
		last = text
		return err == nil && re.MatchString(text) != neg
	}) {
		ts.Fatalf("%s shows:\n%s", args[0], last)
	}
}

// cmdSnap: snap NAME FILE writes down what a window shows, once it shows the same for a moment.
func cmdSnap(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: snap NAME FILE")
	}
	var last string
	still := 0
	if !eventually(20*time.Second, func() bool {
		text, err := capture(ts, args[0])
		ts.Check(err)
		if still++; text != last {
			still = 0
		}
		last = text
		return still >= 4
	}) {
		ts.Fatalf("%s never stands still", args[0])
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(last), 0o600))
}

// cmdSame: same FILE FILE… compares what windows showed; with ! they must differ.
func cmdSame(ts *testscript.TestScript, neg bool, args []string) {
	first := ts.ReadFile(args[0])
	for _, name := range args[1:] {
		if other := ts.ReadFile(name); (other == first) == neg {
			ts.Fatalf("%s:\n%s\n%s:\n%s", args[0], first, name, other)
		}
	}
}

// cmdResize: resize NAME COLSxROWS changes a window's size.
func cmdResize(ts *testscript.TestScript, neg bool, args []string) {
	cols, rows, _ := strings.Cut(args[1], "x")
	if out, err := tmux(ts, "resize-window", "-t", args[0], "-x", cols, "-y", rows); err != nil {
		ts.Fatalf("resize: %v: %s", err, out)
	}
}

// cmdClient: client NAME SIGNAL sends a signal to the ssh that runs in a window.
func cmdClient(ts *testscript.TestScript, neg bool, args []string) {
	pid, err := tmux(ts, "display-message", "-p", "-t", args[0], "#{pane_pid}")
	ts.Check(err)
	n, err := strconv.Atoi(strings.TrimSpace(pid))
	ts.Check(err)
	out, err := exec.Command("pkill", "-"+args[1], "-P", strconv.Itoa(n), "-x", "ssh").CombinedOutput()
	if err != nil {
		ts.Fatalf("client: %v: %s", err, out)
	}
}

// cmdClose: close NAME takes a window away, and what runs in it.
func cmdClose(ts *testscript.TestScript, neg bool, args []string) {
	if out, err := tmux(ts, "kill-session", "-t", args[0]); err != nil {
		ts.Fatalf("close: %v: %s", err, out)
	}
}
