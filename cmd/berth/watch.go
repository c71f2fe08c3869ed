package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/berth-gpu/berth/container/agent/screen"
	"github.com/berth-gpu/berth/gateway"
)

func watchCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "watch LINK [SESSION|NUMBER]", Short: "See a guest's terminal live, read-only; the guest is told",
		Long: "See a guest's terminal live. Nothing that you type reaches it; q or Ctrl-C leaves. Without a second argument it is the newest\n" +
			"terminal that the guest has before them. Where the output is no terminal, what it shows now is printed once.",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 1 || len(args) > 2 {
				return usagef("%s needs a link, and takes a session or a terminal's number", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			req := gateway.WatchRequest{Ref: args[0]}
			if len(args) == 2 {
				if n, err := strconv.Atoi(args[1]); err == nil && n > 0 {
					req.Terminal = n
				} else {
					req.Session = args[1]
				}
			}
			return a.watch(cmd, req)
		},
	}
}

// errOnce ends a watch after its first picture.
var errOnce = errors.New("one picture is enough")

func (a *app) watch(cmd *cobra.Command, req gateway.WatchRequest) error {
	out, isFile := cmd.OutOrStdout().(*os.File)
	if a.json || !isFile || !term.IsTerminal(int(out.Fd())) {
		err := a.plainClient().Watch(cmd.Context(), req, func(p gateway.Picture) error {
			if err := a.print(cmd, p, func(w io.Writer) { printPicture(w, p) }); err != nil {
				return err
			}
			return errOnce
		})
		if errors.Is(err, errOnce) {
			return nil
		}
		return err
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM, syscall.SIGHUP, os.Interrupt)
	defer stop()
	w := &watcher{out: out, name: req.Ref, pictures: make(chan gateway.Picture, 1)}
	return w.run(ctx, func(ctx context.Context) error { return a.plainClient().Watch(ctx, req, w.latest) })
}

func printPicture(w io.Writer, p gateway.Picture) {
	for _, line := range p.Lines {
		fmt.Fprintln(w, line)
	}
}

// watcher shows pictures on the host's own terminal.
type watcher struct {
	out      *os.File
	name     string
	pictures chan gateway.Picture // holds the newest only

	painter screen.Painter
	last    gateway.Picture
}

// latest replaces the picture that waits to be shown.
func (w *watcher) latest(p gateway.Picture) error {
	select {
	case <-w.pictures:
	default:
	}
	w.pictures <- p
	return nil
}

// run shows what watch brings until the host leaves or the terminal ends. The host's terminal is
// given back as it was, whatever happens.
func (w *watcher) run(ctx context.Context, watch func(context.Context) error) error {
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	if in := int(os.Stdin.Fd()); term.IsTerminal(in) {
		was, err := term.MakeRaw(in)
		if err != nil {
			return fmt.Errorf("watch: prepare the terminal: %w", err)
		}
		defer func() { _ = term.Restore(in, was) }()
		go leaveOnKey(os.Stdin, leave)
	}
	defer func() { _, _ = w.out.Write(w.painter.Leave()) }()
	ended := make(chan error, 1)
	go func() { ended <- watch(ctx) }()
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, syscall.SIGWINCH)
	defer signal.Stop(resized)
	for {
		select {
		case p := <-w.pictures:
			w.last = p
			w.paint()
		case <-resized:
			w.paint()
		case err := <-ended:
			if ctx.Err() != nil {
				return nil // the host left
			}
			if err == nil {
				_, _ = w.out.Write(append(w.painter.Leave(), "berth: that terminal has ended\r\n"...))
			}
			return err
		}
	}
}

// leaveOnKey calls leave when the host types q or Ctrl-C, or at the end of the input.
func leaveOnKey(in io.Reader, leave func()) {
	buf := make([]byte, 64)
	for {
		n, err := in.Read(buf)
		if err != nil || strings.ContainsAny(string(buf[:n]), "qQ\x03") {
			leave()
			return
		}
	}
}

// paint draws the last picture with a line of ours below it.
func (w *watcher) paint() {
	if w.last.Rows == 0 {
		return
	}
	cols, rows, err := term.GetSize(int(w.out.Fd()))
	if err != nil || cols < 1 || rows < 2 {
		return
	}
	w.painter.Cols, w.painter.Rows = cols, rows-1
	b := w.painter.Paint(w.last.View)
	bar := fmt.Sprintf(" watching %s, terminal %d, %d×%d, read-only; q leaves", clean(w.name), w.last.Terminal, w.last.Cols, w.last.Rows)
	if len(bar) > cols {
		bar = bar[:cols]
	}
	b = fmt.Appendf(b, "\x1b7\x1b[%d;1H\x1b[0;7m%s\x1b[K\x1b[0m\x1b8", rows, strings.ToValidUTF8(bar, ""))
	_, _ = w.out.Write(b)
}
