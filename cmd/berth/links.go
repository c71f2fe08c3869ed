package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-gpu/berth/gateway"
	"github.com/berth-gpu/berth/gateway/link"
)

func lsCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "ls", Short: "List links and their sessions", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := a.client(cmd).List(cmd.Context())
			if err != nil {
				return err
			}
			return a.print(cmd, all, func(w io.Writer) { printLinks(w, all) })
		},
	}
}

func printLinks(w io.Writer, all []gateway.LinkView) {
	if len(all) == 0 {
		fmt.Fprintln(w, "no links; make one with `berth share`")
		return
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "ID\tNAME\tSTATE\tGUEST\tUNTIL\tSESSIONS\tCONTAINER")
	for _, l := range all {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%d\t%s\n", l.ID, l.Name, stateText(l), orDash(l.Guest), until(l), len(l.Sessions), clean(l.Container))
	}
	_ = t.Flush()
}

func stateText(l gateway.LinkView) string {
	switch {
	case l.State == link.Ended:
		return string(l.Reason)
	case l.Pending != "":
		return "waiting"
	}
	return string(l.State)
}

func until(l gateway.LinkView) string {
	switch {
	case l.State == link.Ended:
		return "-"
	case l.EndsAt != nil:
		return when(*l.EndsAt)
	}
	return when(l.ClaimBy)
}

func showCommand(a *app) *cobra.Command {
	return a.linkVerb("show LINK", "Show everything about a link", func(cmd *cobra.Command, ref string) (gateway.LinkView, error) {
		return a.client(cmd).Show(cmd.Context(), ref)
	}, printLink)
}

func printLink(w io.Writer, l gateway.LinkView) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name, value string) { fmt.Fprintf(t, "%s\t%s\n", name, clean(value)) } // guests choose what their forwards are called
	row("link", l.ID)
	row("name", l.Name)
	row("state", stateText(l))
	row("guest", orDash(l.Guest))
	if l.Pending != "" {
		row("waiting", l.Pending+" (let them in with `berth approve "+l.ID+"`)")
	}
	row("until", until(l))
	row("container", l.Container)
	row("image", l.Image)
	row("gpu", l.GPU)
	row("network", l.Terms.Network)
	for _, m := range l.Terms.Mounts {
		row("mount", m.Source+" at "+m.Target+map[bool]string{true: ", writable", false: ", read-only"}[m.Write])
	}
	if l.Terms.Workspace != "" {
		row("workspace", l.Terms.Workspace+" (kept)")
	}
	for _, s := range l.Sessions {
		row("session", fmt.Sprintf("%s from %s by %s, %s, since %s, %d bytes in, %d out",
			s.ID, s.Address, s.Door, strings.Join(s.Channels, " "), when(s.Since), s.BytesIn, s.BytesOut))
	}
	_ = t.Flush()
}

func revokeCommand(a *app) *cobra.Command {
	return a.linkVerb("revoke LINK", "End a link now; its container and files go", func(cmd *cobra.Command, ref string) (gateway.LinkView, error) {
		return a.client(cmd).Revoke(cmd.Context(), ref)
	}, func(w io.Writer, l gateway.LinkView) {
		if l.Container == "gone" {
			fmt.Fprintf(w, "link %s has ended and is cleaned up; `berth receipts %s` has the items\n", l.Name, l.ID)
			return
		}
		fmt.Fprintf(w, "link %s has ended; cleaning goes on (%s)\n", l.Name, l.Container)
	})
}

func approveCommand(a *app) *cobra.Command {
	return a.linkVerb("approve LINK", "Let the guest in who waits, or the next who comes", func(cmd *cobra.Command, ref string) (gateway.LinkView, error) {
		return a.client(cmd).Approve(cmd.Context(), ref)
	}, func(w io.Writer, l gateway.LinkView) {
		fmt.Fprintf(w, "link %s: %s\n", l.Name, map[bool]string{true: l.Guest + " is in", false: "the next guest gets in"}[l.Guest != ""])
	})
}

// linkVerb is a command that takes one link and answers with how it is afterwards.
func (a *app) linkVerb(use, short string, do func(*cobra.Command, string) (gateway.LinkView, error), text func(io.Writer, gateway.LinkView)) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: oneArg("link: its id, the start of it, or its name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := do(cmd, args[0])
			if err != nil {
				return err
			}
			return a.print(cmd, l, func(w io.Writer) { text(w, l) })
		},
	}
}

func extendCommand(a *app) *cobra.Command {
	var by span
	cmd := &cobra.Command{
		Use: "extend LINK DURATION", Short: "Give a link more time, without a reconnect",
		Long: "Give a link more time: a claimed link ends later, an open one can be claimed later.",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 2 && by == 0 || len(args) == 1 && by != 0 {
				return nil
			}
			return usagef("%s needs a link and a duration, as in `berth extend %s 1h`", cmd.CommandPath(), "LINK")
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			d := time.Duration(by)
			if d == 0 {
				var err error
				if d, err = parseSpan(args[1]); err != nil {
					return usageError{err}
				}
			}
			l, err := a.client(cmd).Extend(cmd.Context(), args[0], d)
			if err != nil {
				return err
			}
			return a.print(cmd, l, func(w io.Writer) { fmt.Fprintf(w, "link %s: until %s\n", l.Name, until(l)) })
		},
	}
	cmd.Flags().Var(&by, "by", "the duration, instead of the second argument")
	return cmd
}

func kickCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "kick LINK|SESSION", Short: "Close connections and keep the link", Args: oneArg("link or session"),
		Long: "Close a link's connections, or one, and keep the link. A guest who waits for approval is turned away.",
		RunE: func(cmd *cobra.Command, args []string) error {
			n, err := a.client(cmd).Kick(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return a.print(cmd, map[string]int{"closed": n}, func(w io.Writer) { fmt.Fprintf(w, "closed %d\n", n) })
		},
	}
}
