// Command berth lends this machine by an SSH link: `berth up` runs the gateway, `berth share`
// makes a link, the other verbs look after links and what is left of them.
package main

import (
	"context"
	"io"
	"os"

	"charm.land/fang/v2"
	"github.com/spf13/cobra"
)

// Exit codes of the program.
const (
	exitFailed = 1
	exitUsage  = 2
)

func main() { os.Exit(run(context.Background(), os.Args[1:])) }

// run runs one command line and returns the exit code.
func run(ctx context.Context, args []string) int {
	root := newRoot(args)
	root.SetArgs(args)
	err := fang.Execute(ctx, root, fang.WithVersion(versionText()),
		fang.WithErrorHandler(func(w io.Writer, _ fang.Styles, err error) { printError(w, err) }))
	return exitCode(err)
}

// newRoot is the table of verbs.
func newRoot(args []string) *cobra.Command {
	a := &app{args: args}
	root := &cobra.Command{
		Use:   "berth",
		Short: "Lend your GPU with an SSH link",
		Long:  "Lend your GPU with an SSH link: run `berth up`, then `berth share`, and give the line it prints to a guest.",
		Args:  noArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error { return a.configure(cmd) }
	flags := root.PersistentFlags()
	flags.StringVar(&a.dir, "state", defaultState(), "the state directory: links, keys, logs")
	flags.BoolVar(&a.json, "json", false, "print JSON, for programs")
	flags.StringVar(&a.file, "config", "", "the config file; by default "+userConfig()+", else "+systemConfig)
	for _, verb := range []func(*app) *cobra.Command{
		upCommand, shareCommand, lsCommand, showCommand, revokeCommand, extendCommand, kickCommand, approveCommand, watchCommand,
		receiptsCommand, logCommand, doorsCommand, doctorCommand, versionCommand,
	} {
		root.AddCommand(verb(a))
	}
	return root
}

// app is what every verb shares: the global flags.
type app struct {
	args []string // the whole command line, read again on SIGHUP
	dir  string
	json bool
	file string
}

func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("unknown command or argument %q for %q", args[0], cmd.CommandPath())
	}
	return nil
}

// oneArg asks for exactly one argument, called what.
func oneArg(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch len(args) {
		case 1:
			return nil
		case 0:
			return usagef("%s needs a %s", cmd.CommandPath(), what)
		default:
			return usagef("%s takes one %s", cmd.CommandPath(), what)
		}
	}
}
