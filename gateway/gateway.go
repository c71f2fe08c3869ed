package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"sync"
	"time"

	"charm.land/ssh"

	"github.com/berth-gpu/berth/container"
	"github.com/berth-gpu/berth/gateway/link"
)

// Server is the gateway. Its fields may be set until Start; after that only its methods are used.
type Server struct {
	Dir      string      // the state directory, 0700: host keys and the audit log
	Book     *link.Store // every link; the caller closes it after Shutdown
	Boxes    boxes       // the container room
	Defaults func() ShareRequest
	Doors    func(token string) []DoorView // the lines that work now, shortest first; if nil, none
	Ways     func() []DoorState            // how each door is; if nil, none
	Log      *slog.Logger                  // if nil, slog.Default
	Now      func() time.Time              // if nil, time.Now
	// Handshake is how long a connection may take to be authenticated, waiting for the host's
	// approval included. If 0, 30 seconds.
	Handshake time.Duration

	ssh    *ssh.Server
	keys   []ssh.Signer // the host's, ed25519 first
	guard  *guard
	audit  *audit
	ctx    context.Context //nolint:containedctx // the life of the background work: Start makes it, Shutdown ends it
	cancel context.CancelFunc
	work   sync.WaitGroup

	approved bell
	health   health

	mu       sync.Mutex // guards the maps; taken before live.mu
	lives    map[string]*live
	cleaning map[string]chan struct{} // closed when a link's end is through
}

// boxes is the subset of container.Engine that links use.
type boxes interface {
	Run(ctx context.Context, spec container.Spec) (container.Box, error)
	Start(ctx context.Context, link string) error
	Box(ctx context.Context, link string) (container.Box, error)
	Remove(ctx context.Context, o container.RemoveOptions) []container.Item
	boxKeeper
}

// boxKeeper is the rest of what the gateway asks of the container room.
type boxKeeper interface {
	EnsureImage(ctx context.Context, o container.ImageOptions) error
	Sweep(ctx context.Context, o container.SweepOptions) []container.Item
	RunDir(link string) string
	Ping(ctx context.Context) error
}

// Start loads the host keys, takes up the links that are in the book and begins to look
// after them. It does not listen: see Serve.
func (s *Server) Start(ctx context.Context) error {
	if s.Log == nil {
		s.Log = slog.Default()
	}
	if s.Now == nil {
		s.Now = time.Now
	}
	keys, err := hostKeys(s.Dir)
	if err != nil {
		return err
	}
	if s.audit, err = openAudit(filepath.Join(s.Dir, "audit.jsonl"), s.Now); err != nil {
		return err
	}
	s.keys = keys
	s.guard = newGuard(s.Now)
	s.lives = make(map[string]*live)
	s.cleaning = make(map[string]chan struct{})
	if s.ssh, err = s.newSSH(); err != nil {
		return err
	}
	s.ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	for _, l := range s.Book.List() {
		if l.State != link.Ended {
			s.live(l.ID)
		}
	}
	s.work.Go(s.keepTime)
	return nil
}

// Serve lets guests in from l, which is the door of that name, until Shutdown. Several doors
// may be served at once.
func (s *Server) Serve(door string, l net.Listener) error {
	err := s.ssh.Serve(doorListener{l, door, s.guard})
	if stopped := errors.Is(err, ssh.ErrServerClosed) || s.ctx.Err() != nil; stopped {
		return nil
	}
	return fmt.Errorf("serve door %s: %w", door, err)
}

// Shutdown ends in order: no new guests, a line to everyone inside, their connections
// closed, the background work stopped. Links and containers stay: the guests come back to
// them when the gateway does.
func (s *Server) Shutdown(ctx context.Context) error {
	if s.cancel == nil {
		return nil
	}
	for _, v := range s.snapshot() {
		v.closeSessions("the gateway is restarting; your container keeps running, the same command brings you back")
	}
	s.cancel()
	err := s.ssh.Close()
	for _, v := range s.snapshot() {
		v.close()
	}
	done := make(chan struct{})
	go func() { s.work.Wait(); close(done) }()
	select {
	case <-done:
	case <-ctx.Done():
		err = errors.Join(err, fmt.Errorf("stop background work: %w", ctx.Err()))
	}
	return errors.Join(err, s.audit.close())
}

// doorListener marks every connection with the door it came through, and counts it as a
// stranger's until it has proved something: here, where they still come in order.
type doorListener struct {
	net.Listener
	door  string
	guard *guard
}

// Accept returns the next connection as a doorConn.
func (l doorListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	dc := newDoorConn(c, l.door)
	l.guard.enter(dc)
	return dc, nil
}

// guarded runs fn so that a panic in it ends nothing but itself.
func (s *Server) guarded(what string, fn func()) {
	defer func() {
		if r := recover(); r != nil {
			s.Log.Error("panic", "in", what, "cause", r)
		}
	}()
	fn()
}
