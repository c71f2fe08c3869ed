package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/berth-gpu/berth/gateway"
	"github.com/berth-gpu/berth/tunnel"
)

// noDoor is how --listen and --tunnel say that there is none.
const noDoor = "none"

// doorFlags are the flags that say how guests get in.
type doorFlags struct {
	listen, advertise string
	tunnels, proxies  []string
}

func (f *doorFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.listen, "listen", ":2222", "where guests connect, HOST:PORT; port 0 takes a free one, none opens no port")
	flags.StringVar(&f.advertise, "advertise", "", "the name or address to tell guests (default: found)")
	flags.StringSliceVar(&f.tunnels, "tunnel", nil, "further doors, separated by commas or repeated: none (default none)")
	flags.StringSliceVar(&f.proxies, "proxy-protocol", nil, "load balancers, by address or network, that say by the PROXY protocol where guests come from")
}

// check finds mistakes before anything is started.
func (f *doorFlags) check() error {
	if _, err := f.trusted(); err != nil {
		return err
	}
	further, err := f.further()
	if err == nil && f.listen == noDoor && len(further) == 0 {
		return usagef("--listen none leaves no door open: name one with --tunnel")
	}
	return err
}

// trusted are the load balancers whose word is taken.
func (f *doorFlags) trusted() ([]netip.Prefix, error) {
	var all []netip.Prefix
	for _, text := range f.proxies {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			addr, err := netip.ParseAddr(text)
			if err != nil {
				return nil, usagef("--proxy-protocol %s: write an address, or a network such as 10.0.0.0/24", text)
			}
			p = netip.PrefixFrom(addr, addr.BitLen())
		}
		all = append(all, p.Masked())
	}
	return all, nil
}

// further are the doors beside the direct one.
func (f *doorFlags) further() ([]tunnel.Door, error) {
	var all []tunnel.Door
	for _, text := range f.tunnels {
		if text == noDoor {
			continue
		}
		door, err := f.door(text)
		if err != nil {
			return nil, err
		}
		all = append(all, door)
	}
	return all, nil
}

// door makes the door that --tunnel names.
func (f *doorFlags) door(text string) (tunnel.Door, error) { //nolint:unparam // each kind of door adds its case
	return nil, usagef("--tunnel %s: no such door; write none", text)
}

// open takes the direct door's port at once, so that a port in use is found before anything
// else begins. The other doors are opened later and may take their time.
func (f *doorFlags) open(ctx context.Context, log *slog.Logger) (*tunnel.Doors, error) {
	doors := &tunnel.Doors{Log: log}
	if f.listen != noDoor {
		proxies, err := f.trusted()
		if err != nil {
			return nil, err
		}
		direct := &tunnel.Direct{Addr: f.listen, Advertise: f.advertise, Proxies: proxies}
		ln, err := direct.Listen(ctx)
		if err != nil {
			return nil, hintError{err, "choose another port with --listen, or stop what uses this one (`ss -ltnp`)"}
		}
		doors.Add(direct, ln)
	}
	further, err := f.further()
	if err != nil {
		return nil, err
	}
	for _, door := range further {
		doors.Add(door, nil)
	}
	return doors, nil
}

// doorsPatience is how long a first link waits for doors that are still being opened.
const doorsPatience = 60 * time.Second

// awaitDoors waits until each door is open or has said why not.
func (g *gatewayRun) awaitDoors(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, doorsPatience)
	defer cancel()
	g.doors.Settled(ctx)
}

// lines are what a guest types now, for every door that is open.
func (g *gatewayRun) lines(token string) []gateway.DoorView {
	views := []gateway.DoorView{}
	for _, w := range g.doors.Lines(token) {
		views = append(views, gateway.DoorView{Name: w.Door, Host: w.Host, Port: w.Port, Via: w.Via, SSH: w.SSH, SCP: w.SCP, SFTP: w.SFTP})
	}
	return views
}

// ways are the doors as the host sees them.
func (g *gatewayRun) ways() []gateway.DoorState {
	states := []gateway.DoorState{}
	for _, st := range g.doors.Status() {
		states = append(states, gateway.DoorState{
			Name: st.Name, State: string(st.State), Why: st.Why, Hint: st.Hint, At: st.Detail,
			Since: st.Since, BytesIn: st.In, BytesOut: st.Out,
		})
	}
	return states
}

func doorsCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "doors", Short: "Show the ways in: which are open, why others are not, and their bytes", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := a.client(cmd).Doors(cmd.Context())
			if err != nil {
				return err
			}
			return a.print(cmd, all, func(w io.Writer) { printDoors(w, all) })
		},
	}
}

func printDoors(w io.Writer, all []gateway.DoorState) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "DOOR\tSTATE\tSINCE\tIN\tOUT\tAT")
	for _, d := range all {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", d.Name, d.State, when(d.Since), sizeText(d.BytesIn), sizeText(d.BytesOut), orDash(d.At))
	}
	_ = t.Flush()
	for _, d := range all {
		if d.Why != "" {
			fmt.Fprintf(w, "%s is %s: %s\n", d.Name, d.State, clean(d.Why))
		}
		if d.Hint != "" {
			fmt.Fprintf(w, "  hint: %s\n", clean(d.Hint))
		}
	}
}

// sizeText writes bytes as people read them.
func sizeText(n int64) string {
	const unit = 1024
	if n < unit {
		return strconv.FormatInt(n, 10) + " B"
	}
	v, i := float64(n)/unit, 0
	for v >= unit && i < 4 {
		v, i = v/unit, i+1
	}
	return fmt.Sprintf("%.1f %ciB", v, "KMGTP"[i])
}

// doorChecks are the running gateway's doors, for doctor.
func doorChecks(all []gateway.DoorState) []check {
	var checks []check
	for _, d := range all {
		c := check{Name: "door " + d.Name, OK: d.State == string(tunnel.Up), Detail: d.State, Fix: d.Hint}
		if d.At != "" {
			c.Detail += " at " + d.At
		}
		if d.Why != "" {
			c.Detail += ": " + d.Why
		}
		if !c.OK && c.Fix == "" {
			c.Fix = "`berth log` and the log of `berth up` have more; it is tried again by itself"
		}
		checks = append(checks, c)
	}
	return checks
}

// closedDoors tells, after the lines that work, which doors have none.
func closedDoors(w io.Writer, all []gateway.DoorState) {
	for _, d := range all {
		if d.State == string(tunnel.Up) {
			continue
		}
		text := d.Name + " is " + d.State
		if d.Why != "" {
			text += ": " + d.Why
		}
		fmt.Fprintln(w, clean(text))
	}
}
