package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-gpu/berth/container"
	"github.com/berth-gpu/berth/gateway"
	"github.com/berth-gpu/berth/gateway/control"
	"github.com/berth-gpu/berth/gateway/link"
	"github.com/berth-gpu/berth/tunnel"
)

//go:embed all:embedded
var embedded embed.FS

// upFlags are the flags of `berth up`: the gateway's own, and the host's defaults for links.
type upFlags struct {
	terms
	doorFlags
	dockerHost, name       string
	headless, share, debug bool
}

func upCommand(a *app) *cobra.Command {
	var f upFlags
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Run the gateway",
		Long: "Run the gateway until it is told to stop. The flags that say what a link grants are the defaults of every link made here.\n" +
			"SIGHUP reads the config file again, for links made from then on; SIGTERM stops in order: links and containers stay.",
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.up(cmd, &f) },
	}
	f.register(cmd)
	return cmd
}

func (f *upFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	f.terms.register(flags)
	f.doorFlags.register(flags)
	flags.StringVar(&f.dockerHost, "docker-host", "", "where Docker listens (default: as the docker command finds it)")
	flags.BoolVar(&f.headless, "headless", false, "log lines only, for systemd and scripts")
	flags.BoolVar(&f.share, "share", false, "make a first link and print it")
	flags.StringVar(&f.name, "name", "", "with --share: the first link's name")
	flags.BoolVar(&f.debug, "debug", false, "log more")
}

// up runs everything until a signal ends it.
func (a *app) up(cmd *cobra.Command, f *upFlags) error {
	if err := f.check(); err != nil {
		return err
	}
	if _, err := f.request(); err != nil {
		return err
	}
	unlock, err := lockState(a.dir)
	if err != nil {
		return err
	}
	defer unlock()
	g := &gatewayRun{app: a, cmd: cmd, flags: f, log: newLog(cmd.ErrOrStderr(), f.debug)}
	return g.run(cmd.Context())
}

func newLog(w io.Writer, debug bool) *slog.Logger {
	level := slog.LevelInfo
	if debug {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level}))
}

// gatewayRun is one run of `berth up`.
type gatewayRun struct {
	app   *app
	cmd   *cobra.Command
	flags *upFlags
	log   *slog.Logger

	defaults atomic.Pointer[gateway.ShareRequest]
	server   *gateway.Server
	control  *control.Server
	doors    *tunnel.Doors
}

// run brings the parts up in order: what can fail without a guest noticing comes first, the
// door comes last. It ends them in the reverse order.
func (g *gatewayRun) run(ctx context.Context) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, os.Interrupt)
	defer stop()
	engine, err := g.engine(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = engine.Close() }()
	book, err := link.OpenStore(link.Options{Path: filepath.Join(g.app.dir, "book.db")})
	if err != nil {
		return err
	}
	defer func() { _ = book.Close() }()
	if err := g.loadDefaults(); err != nil {
		return err
	}
	g.server = &gateway.Server{
		Dir: g.app.dir, Book: book, Boxes: engine, Log: g.log, Doors: g.lines, Ways: g.ways,
		Defaults: func() gateway.ShareRequest { return *g.defaults.Load() },
	}
	if g.doors, err = g.flags.open(ctx, g.log); err != nil {
		return err
	}
	defer g.doors.Close()
	if err := g.server.Start(ctx); err != nil {
		return err
	}
	err = g.serve(ctx, stop)
	return errors.Join(err, g.shutdown())
}

// engine opens the container room and makes sure that there is something to lend.
func (g *gatewayRun) engine(ctx context.Context) (*container.Engine, error) {
	agent, err := embedded.ReadFile("embedded/berth-agent")
	if err != nil {
		return nil, hintError{errors.New("this berth was built without its agent"), "build it with `make build`"}
	}
	engine, err := container.Open(container.Options{Dir: g.app.dir, Agent: agent, Host: g.flags.dockerHost, Env: os.Getenv, Log: g.log})
	if err != nil {
		return nil, err
	}
	if err := engine.Ping(ctx); err != nil {
		return nil, err
	}
	return engine, engine.EnsureImage(ctx, container.ImageOptions{Ref: g.flags.image, Progress: progressTo(g.cmd.ErrOrStderr())})
}

// serve serves the host and the guests until ctx ends or one of them fails.
func (g *gatewayRun) serve(ctx context.Context, stop func()) error {
	g.control = &control.Server{Dir: g.app.dir, Host: g.server}
	hostLn, err := g.control.Listen()
	if err != nil {
		return err
	}
	doors := g.doors.Listeners()
	failed := make(chan error, 1+len(doors))
	go func() { failed <- g.control.Serve(hostLn) }()
	for name, ln := range doors {
		go func() { failed <- g.server.Serve(name, ln) }()
	}
	go tendMemory(ctx)
	g.doors.Start(ctx)
	g.log.Info("gateway is up", "state", g.app.dir)
	if g.flags.share {
		if err := g.firstLink(ctx); err != nil {
			return err
		}
	}
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	for {
		select {
		case err := <-failed:
			return err
		case <-hup:
			g.reload()
		case <-ctx.Done():
			stop() // a second signal ends the program at once
			g.log.Info("stopping; links and containers stay")
			return nil
		}
	}
}

func (g *gatewayRun) firstLink(ctx context.Context) error {
	req := *g.defaults.Load()
	req.Name = g.flags.name
	ctx = gateway.WithProgress(ctx, progressTo(g.cmd.ErrOrStderr()))
	g.awaitDoors(ctx)
	res, err := g.server.Share(ctx, req)
	if err != nil {
		return err
	}
	return g.app.print(g.cmd, res, func(w io.Writer) { printShare(w, res) })
}

// shutdownTimeout bounds an orderly end.
const shutdownTimeout = 15 * time.Second

func (g *gatewayRun) shutdown() error {
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancel()
	var err error
	if g.control != nil {
		err = g.control.Close(ctx)
	}
	return errors.Join(err, g.server.Shutdown(ctx))
}

// loadDefaults reads the command line, the environment and the config file afresh.
func (g *gatewayRun) loadDefaults() error {
	var f upFlags
	root := newRoot(g.app.args)
	fresh := &cobra.Command{Use: "up"}
	f.register(fresh)
	fresh.Flags().AddFlagSet(root.PersistentFlags())
	if err := fresh.Flags().Parse(g.app.args); err != nil {
		return usageError{err}
	}
	values, path, err := readConfig(g.app.file)
	if err != nil {
		return err
	}
	if err := checkKeys(values, root); err != nil {
		return fmt.Errorf("config file %s: %w", path, err)
	}
	if err := apply(fresh.Flags(), values, path); err != nil {
		return err
	}
	req, err := f.request()
	if err != nil {
		return err
	}
	req = withDefaults(req)
	g.defaults.Store(&req)
	return nil
}

// reload is SIGHUP: new links follow the config file as it is now. A file that cannot be used
// changes nothing.
func (g *gatewayRun) reload() {
	if err := g.loadDefaults(); err != nil {
		g.log.Error("config not reloaded; the old one stays in force", "cause", err)
		return
	}
	g.log.Info("config reloaded")
}
