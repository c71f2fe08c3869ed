package gatewaytest

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"os/user"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/berth-gpu/berth/container"
	"github.com/berth-gpu/berth/container/agent"
	"github.com/berth-gpu/berth/container/agent/sftp"
)

const agentEnv = "BERTH_TEST_AGENT"

// Main runs the tests of a package, or, in the processes that Boxes starts, an agent.
func Main(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "sftp" {
		os.Exit(serveSFTP())
	}
	if spec := os.Getenv(agentEnv); spec != "" {
		serveAgent(spec)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// serveSFTP is the child that an agent starts for an sftp channel.
func serveSFTP() int {
	dir, err := os.Getwd()
	if err == nil {
		err = sftp.Serve(context.Background(), sftp.Options{In: os.Stdin, Out: os.Stdout, Dir: dir})
	}
	if err != nil {
		return 1
	}
	return 0
}

// agentSpec is what a box's process is told.
type agentSpec struct {
	Dir  string // the run directory
	Home string
}

func serveAgent(text string) {
	var spec agentSpec
	if err := json.Unmarshal([]byte(text), &spec); err != nil {
		panic(err)
	}
	_ = os.Unsetenv(agentEnv)
	me, err := user.Current()
	if err != nil {
		panic(err)
	}
	uid, _ := strconv.Atoi(me.Uid)
	gid, _ := strconv.Atoi(me.Gid)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	_ = agent.Serve(ctx, agent.ServeOptions{
		Config: agent.Config{User: me.Username, UID: uid, GID: gid, Home: spec.Home, Shell: "/bin/bash"},
		Socket: filepath.Join(spec.Dir, "agent.sock"), Self: self, Version: "test", GuestSocket: filepath.Join(spec.Dir, "guest.sock"),
		Log: slog.New(slog.DiscardHandler),
	})
}

// Boxes is container.Engine's twin. The zero value is of no use: see NewBoxes.
type Boxes struct {
	dir string

	mu   sync.Mutex
	fail map[string]error // by verb: Run, Start, Box, Remove, EnsureImage, Ping
	all  map[string]*box
}

type box struct {
	cmd  *exec.Cmd
	gone chan struct{}
}

// NewBoxes keeps its run directories and homes under dir.
func NewBoxes(dir string) *Boxes {
	return &Boxes{dir: dir, fail: make(map[string]error), all: make(map[string]*box)}
}

// Fail makes a verb fail with err from now on; nil mends it.
func (b *Boxes) Fail(verb string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fail[verb] = err
}

func (b *Boxes) failing(verb string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.fail[verb]
}

// RunDir is where the link's agent finds the gateway's socket.
func (b *Boxes) RunDir(link string) string {
	dir := filepath.Join(b.dir, "run", link)
	_ = os.MkdirAll(dir, 0o755)
	return dir
}

// Home is the guest's home in the link's box.
func (b *Boxes) Home(link string) string { return filepath.Join(b.dir, "home", link) }

// Run starts an agent for the link, or finds the one that is there.
func (b *Boxes) Run(ctx context.Context, spec container.Spec) (container.Box, error) {
	if err := b.failing("Run"); err != nil {
		return container.Box{}, err
	}
	if err := os.MkdirAll(b.Home(spec.Link), 0o700); err != nil {
		return container.Box{}, err
	}
	if err := b.start(spec.Link); err != nil {
		return container.Box{}, err
	}
	return b.Box(ctx, spec.Link)
}

func (b *Boxes) start(link string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if old := b.all[link]; old != nil && old.running() {
		return nil
	}
	text, err := json.Marshal(agentSpec{Dir: b.RunDir(link), Home: b.Home(link)})
	if err != nil {
		return err
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), agentEnv+"="+string(text))
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return err
	}
	x := &box{cmd: cmd, gone: make(chan struct{})}
	go func() { _ = cmd.Wait(); close(x.gone) }()
	b.all[link] = x
	return nil
}

func (x *box) running() bool {
	select {
	case <-x.gone:
		return false
	default:
		return true
	}
}

// Start starts a stopped box again.
func (b *Boxes) Start(_ context.Context, link string) error {
	if err := b.failing("Start"); err != nil {
		return err
	}
	return b.start(link)
}

// Box describes the link's box.
func (b *Boxes) Box(_ context.Context, link string) (container.Box, error) {
	if err := b.failing("Box"); err != nil {
		return container.Box{}, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	x := b.all[link]
	if x == nil {
		return container.Box{}, container.ErrNotFound
	}
	out := container.Box{Link: link, ID: link, Running: x.running()}
	if out.Running {
		out.PID = x.cmd.Process.Pid
	}
	return out, nil
}

// Stop kills a box's agent, as a stopped Docker would.
func (b *Boxes) Stop(link string) {
	b.mu.Lock()
	x := b.all[link]
	b.mu.Unlock()
	if x != nil {
		_ = x.cmd.Process.Kill()
		<-x.gone
	}
}

// Remove takes a box and its home away.
func (b *Boxes) Remove(_ context.Context, o container.RemoveOptions) []container.Item {
	if err := b.failing("Remove"); err != nil {
		return []container.Item{{Name: "container", Detail: err.Error()}}
	}
	b.Stop(o.Link)
	b.mu.Lock()
	delete(b.all, o.Link)
	b.mu.Unlock()
	items := []container.Item{{Name: "container", OK: true, Detail: "removed"}}
	if o.KeepWorkspace == "" {
		err := os.RemoveAll(b.Home(o.Link))
		items = append(items, container.Item{Name: "workspace", OK: err == nil, Detail: fmt.Sprint("removed ", err)})
	}
	_ = os.RemoveAll(filepath.Join(b.dir, "run", o.Link))
	return items
}

// EnsureImage finds every image present.
func (b *Boxes) EnsureImage(context.Context, container.ImageOptions) error {
	return b.failing("EnsureImage")
}

// Ping answers, as a Docker that runs does.
func (b *Boxes) Ping(context.Context) error { return b.failing("Ping") }

// Sweep finds nothing.
func (b *Boxes) Sweep(context.Context, container.SweepOptions) []container.Item { return nil }

// Close ends every box.
func (b *Boxes) Close() {
	b.mu.Lock()
	var links []string
	for link := range b.all {
		links = append(links, link)
	}
	b.mu.Unlock()
	for _, link := range links {
		b.Stop(link)
	}
}

// Eventually polls cond until it holds, or fails the test with what.
func Eventually(tb testing.TB, what string, cond func() bool) {
	tb.Helper()
	deadline := time.After(20 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-deadline:
			tb.Fatalf("never happened: %s", what)
		case <-tick.C:
		}
	}
}
