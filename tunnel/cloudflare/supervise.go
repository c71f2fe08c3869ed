package cloudflare

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// socketName is where the official program finds the gateway, in the state directory. There is no
// port that other users of this machine could come to.
const socketName = "cloudflared.sock"

// supervised runs the official program for one tunnel.
type supervised struct {
	door  *Door
	first chan struct{} // closed when the edge has accepted a connection
	last  string        // error it told
}

// supervise runs the official program until it ends.
func (d *Door) supervise(ctx context.Context) error {
	path := filepath.Join(d.Dir, socketName)
	_ = os.Remove(path) // left by a run that was killed
	ln, err := (&net.ListenConfig{}).Listen(ctx, "unix", path)
	if err != nil {
		return fmt.Errorf("listen for cloudflared: %w", err)
	}
	srv := &http.Server{Handler: d.site, ReadHeaderTimeout: registerTimeout, MaxHeaderBytes: 64 << 10}
	defer srv.Close() //nolint:errcheck // its socket goes with it
	go func() { _ = srv.Serve(ln) }()
	s := &supervised{door: d, first: make(chan struct{})}
	d.begin(d.Hostname)
	if d.Credentials != nil {
		go (&publicCheck{door: d, hostname: d.Hostname, first: s.first}).run(ctx)
	}
	return s.run(ctx, path)
}

// command is what is run. The token is in its environment: arguments are for everybody to read.
func (s *supervised) command(ctx context.Context, socket string) *exec.Cmd {
	d := s.door
	args := []string{"tunnel", "--no-autoupdate", "--unix-socket", socket}
	if d.Protocol == HTTP2 || d.Protocol == QUIC {
		args = append(args, "--protocol", string(d.Protocol))
	}
	for _, addr := range d.Edge {
		args = append(args, "--edge", addr)
	}
	if d.RootsFile != "" {
		args = append(args, "--cacert", d.RootsFile)
	}
	if d.Service != "" {
		args = append(args, "--quick-service", d.Service)
	}
	if d.Credentials != nil {
		args = append(args, "run")
	}
	cmd := exec.CommandContext(ctx, d.Program, args...)
	cmd.Env = append(cmd.Environ(), "NO_COLOR=1")
	if d.Credentials != nil {
		cmd.Env = append(cmd.Env, "TUNNEL_TOKEN="+d.Credentials.official())
	}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = d.grace() + 5*time.Second
	return cmd
}

func (s *supervised) run(ctx context.Context, socket string) error {
	runtime.LockOSThread() // the program is told of our end by the thread that started it
	defer runtime.UnlockOSThread()
	cmd := s.command(ctx, socket)
	dieWithUs(cmd)
	out, err := cmd.StderrPipe()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrProgram, err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("%w: %w", ErrProgram, err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		s.line(ctx, lines.Text())
	}
	err = cmd.Wait()
	if s.last != "" {
		err = errors.New(s.last)
	}
	return fmt.Errorf("%w: it ended: %w", ErrProgram, err)
}

var (
	quickURL  = regexp.MustCompile(`https://([a-z0-9-]+` + regexp.QuoteMeta(quickDomain) + `)`)
	connIndex = regexp.MustCompile(`connIndex=(\d+)`)
)

// line takes a line of the program's log.
func (s *supervised) line(ctx context.Context, text string) {
	s.door.Log.Debug("cloudflared", "line", text)
	if strings.Contains(text, " ERR ") {
		_, s.last, _ = strings.Cut(text, " ERR ")
	}
	if m := quickURL.FindStringSubmatch(text); m != nil && s.door.Credentials == nil && s.door.hostname() == "" {
		s.door.begin(m[1])
		go (&publicCheck{door: s.door, hostname: m[1], first: s.first}).run(ctx)
	}
	m := connIndex.FindStringSubmatch(text)
	if m == nil {
		return
	}
	n, err := strconv.ParseUint(m[1], 10, 8)
	if err != nil {
		return
	}
	switch {
	case strings.Contains(text, "Registered tunnel connection"):
		s.last = ""
		s.door.connChanged(uint8(n), true, nil)
		closeOnce(s.first)
	case strings.Contains(text, "Unregistered tunnel connection"), strings.Contains(text, "Lost connection"), strings.Contains(text, "Connection terminated"):
		s.door.connChanged(uint8(n), false, errConnEnded)
	}
}
