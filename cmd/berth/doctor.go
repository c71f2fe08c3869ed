package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/google/nftables"
	"github.com/spf13/cobra"

	"github.com/berth-gpu/berth/container"
)

// check is one line of `berth doctor`.
type check struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
	Fix    string `json:"fix,omitempty"` // what to run when it is not OK
}

func doctorCommand(a *app) *cobra.Command {
	var dockerHost string
	cmd := &cobra.Command{
		Use: "doctor", Short: "Check what lending needs; each failure comes with its fix", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			checks := a.diagnose(cmd.Context(), dockerHost)
			if err := a.print(cmd, checks, func(w io.Writer) { printChecks(w, checks) }); err != nil {
				return err
			}
			for _, c := range checks {
				if !c.OK {
					return errChecks
				}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&dockerHost, "docker-host", "", "where Docker listens (default: as the docker command finds it)")
	return cmd
}

func printChecks(w io.Writer, checks []check) {
	for _, c := range checks {
		fmt.Fprintf(w, "%s  %-16s %s\n", map[bool]string{true: "ok  ", false: "FAIL"}[c.OK], c.Name, clean(c.Detail))
		if !c.OK && c.Fix != "" {
			fmt.Fprintf(w, "      fix: %s\n", c.Fix)
		}
	}
}

// minFree is the least space for a guest's files that is worth lending.
const minFree = 5 << 30

// diagnose runs every check; one that fails does not stop the others.
func (a *app) diagnose(ctx context.Context, dockerHost string) []check {
	checks := []check{systemCheck(), clockCheck(), a.stateCheck(), agentCheck(), filterCheck()}
	checks = append(checks, a.gatewayChecks(ctx)...)
	dir, err := os.MkdirTemp("", "berth-doctor")
	if err != nil {
		return append(checks, check{Name: "docker", Detail: err.Error(), Fix: "make room in " + os.TempDir()})
	}
	defer func() { _ = os.RemoveAll(dir) }()
	engine, err := container.Open(container.Options{Dir: dir, Host: dockerHost, Env: os.Getenv})
	if err == nil {
		defer func() { _ = engine.Close() }()
		err = engine.Ping(ctx)
	}
	if err != nil {
		return append(checks, check{Name: "docker", Detail: err.Error(), Fix: dockerFix()})
	}
	checks = append(checks, check{Name: "docker", OK: true, Detail: "answers"})
	return append(checks, diskCheck(ctx, engine), imageCheck(ctx, engine))
}

func systemCheck() check {
	return check{
		Name: "system", OK: runtime.GOOS == "linux", Detail: runtime.GOOS + "/" + runtime.GOARCH,
		Fix: "lend from a Linux machine",
	}
}

// clockCheck finds a clock that was never set: links would end at once, or never.
func clockCheck() check {
	now := time.Now()
	return check{Name: "clock", OK: now.Year() >= 2025, Detail: now.Format(time.RFC3339), Fix: "timedatectl set-ntp true"}
}

func (a *app) stateCheck() check {
	c := check{Name: "state directory", Detail: a.dir, Fix: "name a directory that you can write with --state"}
	st, err := os.Stat(a.dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		c.OK, c.Detail = true, a.dir+" will be made"
	case err != nil:
		c.Detail = err.Error()
	case st.Mode().Perm()&0o077 != 0:
		c.Detail, c.Fix = a.dir+" is open to other users", "chmod 700 "+a.dir
	default:
		probe := filepath.Join(a.dir, ".doctor")
		err := os.WriteFile(probe, nil, 0o600)
		_ = os.Remove(probe)
		c.OK = err == nil
		if err != nil {
			c.Detail = err.Error()
		}
	}
	return c
}

func agentCheck() check {
	_, err := embedded.ReadFile("embedded/berth-agent")
	return check{Name: "agent", OK: err == nil, Detail: map[bool]string{true: "built in", false: "this berth was built without it"}[err == nil], Fix: "make build"}
}

// filterCheck asks the kernel for nf_tables, with which a container keeps to the internet.
func filterCheck() check {
	c := check{Name: "nf_tables", Fix: "modprobe nf_tables; links without it need --network none"}
	if os.Geteuid() != 0 {
		c.OK, c.Detail = true, "not checked: that needs root"
		return c
	}
	conn, err := nftables.New()
	if err == nil {
		_, err = conn.ListTables()
	}
	c.OK, c.Detail = err == nil, "the kernel can filter a container's traffic"
	if err != nil {
		c.Detail = err.Error()
	}
	return c
}

// gatewayChecks asks the running gateway about itself and its doors.
func (a *app) gatewayChecks(ctx context.Context) []check {
	all, err := a.plainClient().List(ctx)
	if err != nil {
		return []check{{Name: "gateway", OK: true, Detail: "not running on " + a.dir}}
	}
	checks := []check{{Name: "gateway", OK: true, Detail: fmt.Sprintf("running, %d links in its book", len(all))}}
	doors, err := a.plainClient().Doors(ctx)
	if err != nil {
		return append(checks, check{Name: "doors", Detail: err.Error(), Fix: "start the gateway again with this version of berth"})
	}
	return append(checks, doorChecks(doors)...)
}

func dockerFix() string {
	if _, err := os.Stat("/usr/sbin/dockerd"); err != nil {
		return "apt-get install -y --no-install-recommends docker.io iptables"
	}
	if _, err := os.Stat("/run/systemd/system"); err != nil {
		return "dockerd >/var/log/dockerd.log 2>&1 &"
	}
	return "systemctl start docker"
}

func diskCheck(ctx context.Context, e *container.Engine) check {
	free, err := e.FreeDisk(ctx)
	c := check{Name: "disk", OK: err == nil && free >= minFree, Detail: fmt.Sprintf("%.1f GiB free for guests", float64(free)/(1<<30)), Fix: "docker system df; docker image prune"}
	if err != nil {
		c.Detail = err.Error()
	}
	return c
}

func imageCheck(ctx context.Context, e *container.Engine) check {
	there, err := e.ImagePresent(ctx, container.DefaultImage)
	c := check{Name: "guest image", OK: err == nil, Detail: container.DefaultImage + " is there"}
	if !there {
		c.Detail = container.DefaultImage + " is not there yet; `berth up` builds it"
	}
	if err != nil {
		c.Detail, c.Fix = err.Error(), dockerFix()
	}
	return c
}
