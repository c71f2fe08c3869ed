package container

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/moby/moby/client"
)

// Options say where an Engine lives. They are read once, by Open.
type Options struct {
	Dir   string                   // state directory; made with mode 0700 if it is not there
	Agent []byte                   // the static agent binary, see cmd/berth-agent
	Host  string                   // where Docker listens, as in DOCKER_HOST; if empty, found as docker finds it
	Env   func(name string) string // looks up DOCKER_HOST, DOCKER_CONTEXT, DOCKER_CONFIG, HOME; if nil, none is set
	Log   *slog.Logger             // if nil, nothing is logged
	Now   func() time.Time         // if nil, time.Now
}

// Engine makes, finds and removes the boxes of one state directory. It is safe for
// concurrent use; the verbs of one link wait for each other.
type Engine struct {
	dir    string // absolute
	state  string // value of LabelState
	bin    string // directory of this agent on the host
	socket string // Docker's own unix socket, "" when it is reached by TCP
	docker *client.Client
	log    *slog.Logger
	now    func() time.Time

	ownLimits atomic.Bool // Docker was found unable to raise limits, see launch

	mu     sync.Mutex            // guards the fields below; never held during I/O
	links  map[string]*linkLock  // links with a verb under way
	looks  map[string]*imageView // by image id
	root   string                // Docker's directory, once it is known
	builds sync.Mutex            // one build of the default image at a time
}

type linkLock struct {
	sync.Mutex
	users int
}

// Open prepares an Engine. It needs no living daemon: whatever talks to Docker later returns
// ErrUnavailable until there is one, and works again once it is back.
func Open(o Options) (*Engine, error) {
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("open state directory: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open state directory: %w", err)
	}
	e := &Engine{
		dir: dir, log: o.Log, now: o.Now,
		links: map[string]*linkLock{}, looks: map[string]*imageView{},
	}
	if e.log == nil {
		e.log = slog.New(slog.DiscardHandler)
	}
	if e.now == nil {
		e.now = time.Now
	}
	if e.state, err = stateID(dir); err != nil {
		return nil, err
	}
	if e.bin, err = installAgent(dir, o.Agent); err != nil {
		return nil, err
	}
	if err := e.connect(o); err != nil {
		return nil, err
	}
	return e, nil
}

// connect makes the client; no byte is sent yet.
func (e *Engine) connect(o Options) error {
	opts, host, err := endpoint(o)
	if err != nil {
		return fmt.Errorf("find docker: %w", err)
	}
	e.docker, err = client.New(append(opts, client.WithUserAgent("berth"))...)
	if err != nil {
		return fmt.Errorf("find docker: %w", err)
	}
	e.socket, _ = strings.CutPrefix(host, "unix://")
	if e.socket == host {
		e.socket = ""
	}
	return nil
}

// Close lets idle connections to Docker go. Boxes stay.
func (e *Engine) Close() error { return e.docker.Close() }

// Ping asks Docker for a sign of life. An error wraps ErrUnavailable.
func (e *Engine) Ping(ctx context.Context) error {
	_, err := ask(ctx, op{"ping docker", quick}, func(ctx context.Context) (client.PingResult, error) {
		return e.docker.Ping(ctx, client.PingOptions{})
	})
	if err != nil && !errors.Is(err, ErrUnavailable) && ctx.Err() == nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return err
}

// RunDir is the directory on the host that the box of link sees, read-only, as /.berth/run.
// The gateway listens on agent.sock in it.
func (e *Engine) RunDir(link string) string { return filepath.Join(e.dir, "run", link) }

// State is the value of LabelState on everything this Engine makes.
func (e *Engine) State() string { return e.state }

// validLink is what may stand in a container's name and in a path.
var validLink = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_-]{0,63}$`)

// lock makes the verbs of one link wait for each other. It returns the way out.
func (e *Engine) lock(link string) func() {
	e.mu.Lock()
	l := e.links[link]
	if l == nil {
		l = new(linkLock)
		e.links[link] = l
	}
	l.users++
	e.mu.Unlock()
	l.Lock()
	return func() {
		l.Unlock()
		e.mu.Lock()
		defer e.mu.Unlock()
		if l.users--; l.users == 0 {
			delete(e.links, link)
		}
	}
}

// stateID reads the state directory's id, or makes one.
func stateID(dir string) (string, error) {
	path := filepath.Join(dir, "id")
	data, err := os.ReadFile(path)
	if id := strings.TrimSpace(string(data)); err == nil && id != "" {
		return id, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("read state id: %w", err)
	}
	id := strings.ToLower(rand.Text())[:16]
	if err := writeFile(path, []byte(id+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("write state id: %w", err)
	}
	return id, nil
}
