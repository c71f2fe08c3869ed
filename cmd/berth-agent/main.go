// Command berth-agent is PID 1 in every container: it sets the container up, gives up
// every right it had for that, and serves the gateway. Under other names it is what the
// guest finds on their PATH: `berth` (status, invite, attach, done) and `scp`.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"

	"github.com/berth-gpu/berth/container/agent"
	"github.com/berth-gpu/berth/container/agent/scp"
	"github.com/berth-gpu/berth/container/agent/sftp"
)

const configFile = "/.berth/run/config.json"

func main() {
	switch name := path.Base(os.Args[0]); name {
	case "berth":
		os.Exit(guest(os.Args[1:]))
	case "scp":
		os.Exit(scp.Main(os.Args[1:], scp.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
	}
	if err := run(strings.Join(os.Args[1:], " ")); err != nil {
		fmt.Fprintln(os.Stderr, "berth-agent:", err)
		os.Exit(1)
	}
}

func run(stage string) error {
	if stage == "sftp" {
		return serveSFTP()
	}
	config, err := agent.LoadConfig(configFile)
	if err != nil {
		return err
	}
	switch stage {
	case "":
		if err := agent.Setup(config); err != nil {
			return err
		}
		return agent.Become(config, []string{agent.BinDir + "/berth-agent", "serve"})
	case "serve":
		if err := agent.Harden(); err != nil {
			return err
		}
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
		defer stop()
		_ = agent.Serve(ctx, agent.ServeOptions{Config: config, Version: version()}) // ends only with ctx
		return nil
	default:
		return fmt.Errorf("unknown stage %q", stage)
	}
}

// serveSFTP is the child behind one sftp channel; fd 0 and 1 are the channel itself.
func serveSFTP() error {
	home, err := os.Getwd()
	if err != nil {
		home = "/"
	}
	return sftp.Serve(context.Background(), sftp.Options{In: os.Stdin, Out: os.Stdout, Dir: home})
}

// guest is the command that the guest types inside.
func guest(args []string) int {
	if len(args) != 1 || (!slices.Contains([]string{"status", "invite", "attach", "done"}, args[0])) {
		fmt.Fprintln(os.Stderr, `usage: berth status   how long you still have, and what you were lent
       berth invite   a fresh link to this same container, for another key or window
       berth attach   your terminals; ssh -t … berth attach N shares one
       berth done     give the machine back now: the container and its files go`)
		return 2
	}
	reply, err := agent.Ask(context.Background(), args[0])
	if err == nil && reply.Error != "" {
		err = fmt.Errorf("%s", reply.Error)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "berth:", err)
		return 1
	}
	fmt.Println(reply.Text)
	return 0
}

func version() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		return info.Main.Version
	}
	return "unknown"
}
