package main

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/berth-gpu/berth/container"
	"github.com/berth-gpu/berth/gateway"
	"github.com/berth-gpu/berth/gateway/link"
)

// terms are the flags that say what a link grants. `berth share` sends what was set; what was
// not is filled in by the running gateway, whose own flags are the host's defaults.
type terms struct {
	image, network, workspace, runtime string
	ttl, lasts, keepFor                span
	sessions                           int
	cpus                               float64
	memory, shm                        size
	pids                               int64
	mounts                             mounts
	root, writable, approve            bool
}

// The defaults of a link, as help shows them.
const (
	defaultTTL      = 24 * time.Hour
	defaultFor      = 8 * time.Hour
	defaultSessions = 10
)

func (t *terms) register(f *pflag.FlagSet) {
	f.StringVar(&t.image, "image", "", "the guest's image (default "+container.DefaultImage+", built when it is missing)")
	f.Var(&t.ttl, "ttl", "how long the link may stay unclaimed (default 24h)")
	f.Var(&t.lasts, "for", "how long it lasts from its claim (default 8h)")
	f.IntVar(&t.sessions, "sessions", 0, "simultaneous SSH connections (default 10)")
	f.Float64Var(&t.cpus, "cpus", 0, "processors, such as 2 or 0.5 (default all)")
	f.Var(&t.memory, "memory", "memory, such as 16G (default all)")
	f.Var(&t.shm, "shm", "size of /dev/shm (default 1G, or half of the memory where that is less)")
	f.Int64Var(&t.pids, "pids", 0, "processes and threads (default 4096)")
	f.StringVar(&t.network, "network", "", "internet, none, or lan (default internet)")
	f.Var(&t.mounts, "mount", "lend a path of this machine, read-only unless :rw; repeatable")
	f.StringVar(&t.workspace, "workspace", "", "keep the guest's files under this name after the end")
	f.BoolVar(&t.root, "root", false, "the guest is root inside: apt and su work, sudo does not")
	f.BoolVar(&t.writable, "writable", false, "the whole file system can be written, not the home alone")
	f.StringVar(&t.runtime, "runtime", "", "Docker runtime, such as runsc or kata")
	f.Var(&t.keepFor, "keep-for", "how long a terminal waits for a guest who was cut off (default until the link ends)")
	f.BoolVar(&t.approve, "approve", false, "the first use waits for `berth approve`")
}

// request is what the flags ask for.
func (t *terms) request() (gateway.ShareRequest, error) {
	if t.network != "" && !slices.Contains([]string{"internet", "none", "lan"}, t.network) {
		return gateway.ShareRequest{}, usagef("--network %s: write internet, none or lan", t.network)
	}
	if t.sessions < 0 || t.cpus < 0 || t.pids < 0 {
		return gateway.ShareRequest{}, usagef("a limit cannot be negative")
	}
	return gateway.ShareRequest{TTL: time.Duration(t.ttl), Terms: link.Terms{
		Image: t.image, For: time.Duration(t.lasts), Sessions: t.sessions, CPUs: t.cpus, Memory: int64(t.memory), SHM: int64(t.shm),
		PIDs: t.pids, Network: t.network, Mounts: t.mounts, Workspace: t.workspace, Root: t.root, Writable: t.writable,
		Runtime: t.runtime, Approve: t.approve, KeepFor: time.Duration(t.keepFor),
	}}, nil
}

// withDefaults fills what the host left open.
func withDefaults(r gateway.ShareRequest) gateway.ShareRequest {
	if r.TTL == 0 {
		r.TTL = defaultTTL
	}
	if r.Terms.For == 0 {
		r.Terms.For = defaultFor
	}
	if r.Terms.Sessions == 0 {
		r.Terms.Sessions = defaultSessions
	}
	return r
}

func shareCommand(a *app) *cobra.Command {
	var t terms
	var name string
	cmd := &cobra.Command{
		Use:   "share",
		Short: "Make a link and print the lines that work now",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			req, err := t.request()
			if err != nil {
				return err
			}
			req.Name = name
			res, err := a.client(cmd).Share(cmd.Context(), req)
			if err != nil {
				return err
			}
			return a.print(cmd, res, func(w io.Writer) { printShare(w, res) })
		},
	}
	t.register(cmd.Flags())
	cmd.Flags().StringVar(&name, "name", "", "a name for the link in lists")
	return cmd
}

// printShare prints what the host copies to their guest.
func printShare(w io.Writer, r gateway.ShareResult) {
	fmt.Fprintf(w, "link %s: claim it by %s; it then lasts %s\n\n", r.Link.Name, when(r.Link.ClaimBy), lasting(r.Link.Terms.For))
	for _, d := range r.Doors {
		fmt.Fprintf(w, "  %s\n  %s\n  %s\n\n", d.SSH, d.SCP, d.SFTP)
	}
	closedDoors(w, r.Link.Doors)
	fmt.Fprintf(w, "host key (%s): %s\n", r.HostKey.Type, r.HostKey.Fingerprint)
	fmt.Fprintf(w, "known_hosts: %s\n", r.HostKey.KnownHosts)
	fmt.Fprintf(w, "The link is shown only now. The first guest to use it has it; then it works with their key alone.\n")
}
