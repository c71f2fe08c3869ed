package main

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-gpu/berth/gateway"
)

func receiptsCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "receipts [LINK]", Short: "Show what was cleaned after each link",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef("%s takes one link at most", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			all, err := a.client(cmd).Receipts(cmd.Context())
			if err != nil {
				return err
			}
			if len(args) == 1 {
				all = ofLink(all, args[0])
			}
			return a.print(cmd, all, func(w io.Writer) { printReceipts(w, all) })
		},
	}
}

func ofLink(all []gateway.Receipt, ref string) []gateway.Receipt {
	some := []gateway.Receipt{}
	for _, r := range all {
		if r.Link == ref || r.Name == ref {
			some = append(some, r)
		}
	}
	return some
}

func printReceipts(w io.Writer, all []gateway.Receipt) {
	if len(all) == 0 {
		fmt.Fprintln(w, "no receipts")
	}
	for _, r := range all {
		fmt.Fprintf(w, "%s  %s  %s\n", r.Name, r.Reason, when(r.Ended))
		for _, i := range r.Items {
			fmt.Fprintf(w, "  %s  %-14s %s\n", map[bool]string{true: "pass", false: "FAIL"}[i.OK], i.Name, clean(i.Detail))
		}
	}
}

func logCommand(a *app) *cobra.Command {
	var n int
	var follow bool
	cmd := &cobra.Command{
		Use: "log", Short: "Show what host and guests did", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if n < 0 {
				return usagef("-n cannot be negative")
			}
			events, err := a.client(cmd).Events(cmd.Context(), n)
			if err != nil {
				return err
			}
			if follow {
				return a.follow(cmd, events)
			}
			return a.print(cmd, events, func(w io.Writer) { printEvents(w, events) })
		},
	}
	cmd.Flags().IntVarP(&n, "lines", "n", 50, "how many events; 0 for all")
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on with new ones; with --json, one object a line")
	return cmd
}

// follow prints events as they come, until the gateway stops or the host interrupts.
func (a *app) follow(cmd *cobra.Command, events []gateway.Event) error {
	last := time.Time{}
	for {
		var fresh []gateway.Event
		for _, e := range events {
			if e.Time.After(last) {
				fresh = append(fresh, e)
			}
		}
		if err := a.printEach(cmd, fresh); err != nil {
			return err
		}
		if len(fresh) > 0 {
			last = fresh[len(fresh)-1].Time
		}
		select {
		case <-cmd.Context().Done():
			return nil
		case <-time.After(time.Second):
		}
		var err error
		if events, err = a.client(cmd).Events(cmd.Context(), 1000); err != nil {
			return err
		}
	}
}

func printEvents(w io.Writer, events []gateway.Event) {
	for _, e := range events {
		fmt.Fprintf(w, "%s  %-15s", e.Time.Local().Format("2006-01-02 15:04:05"), e.Event)
		for _, v := range []string{e.Link, e.Session, e.Address, e.Key, e.Detail} {
			if v != "" {
				fmt.Fprint(w, "  ", clean(v))
			}
		}
		fmt.Fprintln(w)
	}
}
