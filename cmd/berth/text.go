package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/berth-gpu/berth/container"
	"github.com/berth-gpu/berth/gateway"
	"github.com/berth-gpu/berth/gateway/control"
	"github.com/berth-gpu/berth/gateway/link"
)

// usageError is a mistake in the command line: exit code 2.
type usageError struct{ err error }

func (u usageError) Error() string { return u.err.Error() }
func (u usageError) Unwrap() error { return u.err }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// hintError is a failure that comes with what to do about it.
type hintError struct {
	err  error
	hint string
}

func (h hintError) Error() string { return h.err.Error() }
func (h hintError) Unwrap() error { return h.err }

// errChecks is returned by doctor when a check failed: it has printed everything already.
var errChecks = errors.New("some checks failed")

func exitCode(err error) int {
	var usage usageError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &usage):
		return exitUsage
	default:
		return exitFailed
	}
}

// printError prints a failure and what to do about it, a line each.
func printError(w io.Writer, err error) {
	if errors.Is(err, errChecks) {
		return
	}
	fmt.Fprintln(w, "berth: error:", clean(err.Error()))
	if hint := hintFor(err); hint != "" {
		fmt.Fprintln(w, "berth: hint:", hint)
	}
}

// hintFor says what to do about a class of errors.
func hintFor(err error) string {
	var usage usageError
	var own hintError
	switch {
	case errors.As(err, &own):
		return own.hint
	case errors.As(err, &usage):
		return "`berth --help` lists the commands, `berth COMMAND --help` their flags"
	}
	for _, h := range hints {
		if errors.Is(err, h.class) {
			return h.hint
		}
	}
	return ""
}

var hints = []struct {
	class error
	hint  string
}{
	{control.ErrNotRunning, "start it with `berth up`, or name its state directory with --state"},
	{link.ErrUnknown, "`berth ls` lists the links"},
	{link.ErrAmbiguous, "use the whole id, as `berth ls` prints it"},
	{gateway.ErrNoTerminal, "`berth ls` shows who is connected; commands and file transfers have no terminal"},
	{link.ErrEnded, "make a new link with `berth share`"},
	{link.ErrTooLong, "a link can last a year from now at most"},
	{link.ErrLocked, "another gateway uses this state directory; give this one its own with --state"},
	{link.ErrDurable, "free some disk space where the state directory is, then try again"},
	{container.ErrUnavailable, "start Docker (`systemctl start docker`, or `dockerd &` where there is no systemd), then try again; `berth doctor` checks it"},
	{container.ErrNoImage, "check the name, or leave --image out to have one built from this system's packages"},
	{container.ErrNoSpace, "free some disk space (`docker system df` shows Docker's share), then try again"},
	{container.ErrNoSubnet, "remove unused networks with `docker network prune`, or give Docker more in default-address-pools"},
}

// print writes v as JSON where programs read it, and as text where people do.
func (a *app) print(cmd *cobra.Command, v any, text func(io.Writer)) error {
	w := cmd.OutOrStdout()
	if !a.json {
		text(w)
		return nil
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// printEach writes events one by one, as JSON lines or as text.
func (a *app) printEach(cmd *cobra.Command, events []gateway.Event) error {
	w := cmd.OutOrStdout()
	if !a.json {
		printEvents(w, events)
		return nil
	}
	enc := json.NewEncoder(w)
	for _, e := range events {
		if err := enc.Encode(e); err != nil {
			return err
		}
	}
	return nil
}

// client reaches the running gateway; what takes long is told on stderr.
func (a *app) client(cmd *cobra.Command) *control.Client {
	return &control.Client{Dir: a.dir, Progress: progressTo(cmd.ErrOrStderr())}
}

// plainClient is client for those who print nothing on the way.
func (a *app) plainClient() *control.Client { return &control.Client{Dir: a.dir} }

func progressTo(w io.Writer) func(string) {
	return func(line string) { fmt.Fprintln(w, "berth:", clean(line)) }
}

// clean keeps what comes from elsewhere from writing control codes to the host's terminal.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == unicode.ReplacementChar {
			return '?'
		}
		return r
	}, strings.ReplaceAll(s, "\n", " "))
}

func when(t time.Time) string { return t.Local().Format("Mon 2 Jan 15:04 MST") }

// lasting writes a duration without the zeros of time.Duration's own way.
func lasting(d time.Duration) string {
	s := d.Round(time.Second).String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return clean(s)
}

func versionCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.print(cmd, map[string]string{"version": versionText()}, func(w io.Writer) { fmt.Fprintln(w, "berth", versionText()) })
		},
	}
}

func versionText() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
