package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"
)

// Socket is where the container sees the gateway's socket.
const Socket = "/.berth/run/agent.sock"

// ServeOptions says how an agent serves.
type ServeOptions struct {
	Config  Config
	Socket  string // the gateway's; if empty, Socket
	Self    string // our own program, started again for sftp; if empty, BinDir's
	Version string
	Filter  string // told to the gateway in Hello
	// GuestSocket is where the guest's berth command asks; if empty, the constant of that name.
	GuestSocket string
	Log         *slog.Logger
}

// server is the inner side of one container.
type server struct {
	config  Config
	options ServeOptions
	self    string
	shell   []string // program and arguments before -c; empty when the image has none
	log     *slog.Logger
	reaper  *reaper

	mu        sync.Mutex // guards the maps; taken before terminal.mu and the reaper's
	children  map[uint64]*child
	terminals map[*terminal]bool

	out sync.Mutex // orders frames to the gateway; taken last
	up  *Conn      // nil while the gateway is away

	calls     calls
	listeners listeners
}

// Serve answers the gateway until ctx ends, dialling again whenever the connection is lost:
// a gateway that restarts finds terminals and jobs where it left them.
func Serve(ctx context.Context, o ServeOptions) error {
	s := newServer(o)
	stop := make(chan struct{})
	defer close(stop)
	go s.reaper.run(stop)
	if err := s.listenGuest(ctx); err != nil {
		s.log.Warn("the guest's berth command is off", "cause", err)
	}
	wait := minRedial
	for ctx.Err() == nil {
		began := time.Now()
		err := s.serveOnce(ctx)
		if time.Since(began) > time.Second {
			wait = minRedial
		}
		s.log.Debug("gateway away", "cause", err)
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
		wait = min(2*wait, maxRedial)
	}
	s.killAll()
	return ctx.Err()
}

const (
	minRedial = 20 * time.Millisecond
	maxRedial = time.Second
)

func newServer(o ServeOptions) *server {
	s := &server{
		config: o.Config, options: o, self: o.Self, log: o.Log, reaper: newReaper(),
		shell:    findShell(o.Config.Shell),
		children: make(map[uint64]*child), terminals: make(map[*terminal]bool),
	}
	if s.self == "" {
		s.self = BinDir + "/berth-agent"
	}
	if s.log == nil {
		s.log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	if s.options.Socket == "" {
		s.options.Socket = Socket
	}
	s.calls.waiting = make(map[uint64]chan *Reply)
	s.listeners.open = make(map[uint64]net.Listener)
	s.listeners.waiting = make(map[uint64]net.Conn)
	return s
}

// serveOnce serves one connection to the gateway.
func (s *server) serveOnce(ctx context.Context) error {
	raw, err := (&net.Dialer{}).DialContext(ctx, "unix", s.options.Socket)
	if err != nil {
		return err
	}
	defer func() { _ = raw.Close() }()
	defer context.AfterFunc(ctx, func() { _ = raw.Close() })()
	conn := &Conn{Unix: raw.(*net.UnixConn), AcceptFiles: true}
	s.out.Lock()
	s.up = conn
	s.out.Unlock()
	defer s.hungUp(conn)
	s.send(s.hello())
	for {
		f, err := conn.Receive()
		if err != nil {
			return err
		}
		s.handle(ctx, f)
	}
}

func (s *server) hungUp(conn *Conn) {
	s.out.Lock()
	if s.up == conn {
		s.up = nil
	}
	s.out.Unlock()
	s.calls.fail()
	s.unlistenAll()
}

func (s *server) hello() *Frame {
	h := &Hello{Version: s.options.Version, Filter: s.options.Filter}
	if len(s.shell) > 0 {
		h.Shell = s.shell[0]
	}
	s.mu.Lock()
	h.Terminals = len(s.terminals)
	s.mu.Unlock()
	return &Frame{Op: OpHello, Hello: h}
}

// send gives f to the gateway, or drops it while there is none: nobody is left to tell.
func (s *server) send(f *Frame) {
	s.out.Lock()
	defer s.out.Unlock()
	if s.up == nil {
		return
	}
	if err := s.up.Send(f); err != nil {
		s.log.Debug("frame lost", "op", f.Op, "cause", err)
	}
}

// handle acts on one frame. A start is quick; whatever can wait has its own goroutine.
func (s *server) handle(ctx context.Context, f *Frame) {
	switch f.Op {
	case OpStart:
		s.answer(f, s.begin(f))
	case OpDial:
		go func() { s.answer(f, s.dial(ctx, f)) }()
	case OpListen:
		s.answer(f, s.listen(ctx, f))
	case OpClose:
		s.unlisten(f)
	case OpTake:
		s.takeConn(f)
	case OpSignal:
		s.signal(f)
	case OpReply:
		s.calls.answer(f.ID, f.Reply)
	case OpTerminals:
		s.send(&Frame{Op: OpStarted, ID: f.ID, Terminals: s.list()})
	case OpWatch:
		s.answer(f, s.watch(f))
	case OpNotice:
		s.notice(f)
	case OpFarewell:
		s.farewell(f)
	case OpPing:
		s.send(&Frame{Op: OpPong, ID: f.ID})
	default:
		closeAll(f.Files)
	}
}

// answer tells the gateway that f could not be done. What succeeded was answered on its way.
func (s *server) answer(f *Frame, err error) {
	if err == nil {
		return
	}
	closeAll(f.Files)
	missing := errors.Is(err, errNoShell) || errors.Is(err, errNoCommand) || errors.Is(err, errNoTerminal) || errors.Is(err, os.ErrNotExist)
	s.send(&Frame{Op: OpStarted, ID: f.ID, Error: err.Error(), NotFound: missing})
}

func (s *server) begin(f *Frame) error {
	if f.Start == nil {
		return fmt.Errorf("%w: start without a request", ErrFrame)
	}
	switch f.Start.Mode {
	case ModeExec:
		return s.startExec(f)
	case ModeTerminal:
		return s.startTerminal(f)
	case ModeSFTP:
		return s.startSFTP(f)
	default:
		return fmt.Errorf("%w: mode %q", ErrFrame, f.Start.Mode)
	}
}

// guard runs fn so that a panic in it ends nothing but itself: PID 1 goes on.
func (s *server) guard(what string, fn func()) {
	defer func() {
		if r := recover(); r != nil {
			s.log.Error("panic", "in", what, "cause", r)
		}
	}()
	fn()
}

func (s *server) forget(id uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.children, id)
}

func (s *server) signal(f *Frame) {
	s.mu.Lock()
	c := s.children[f.ID]
	s.mu.Unlock()
	sig := signalNumber(f.Signal)
	if c == nil || sig == 0 {
		return
	}
	if err := s.reaper.signal(c.pid, sig); err != nil {
		s.log.Debug("signal", "name", f.Signal, "cause", err)
	}
}

// dial connects inside the container's network and bridges the passed socket to it.
func (s *server) dial(ctx context.Context, f *Frame) error {
	if f.Dial == nil || len(f.Files) != 1 {
		return fmt.Errorf("%w: dial", ErrFrame)
	}
	if f.Dial.Network != "tcp" && f.Dial.Network != "unix" {
		return fmt.Errorf("%w: network %q", ErrFrame, f.Dial.Network)
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	far, err := (&net.Dialer{}).DialContext(ctx, f.Dial.Network, f.Dial.Address)
	if err != nil {
		return err
	}
	near, err := streamConn(f.Files[0])
	if err != nil {
		_ = far.Close()
		return err
	}
	s.send(&Frame{Op: OpStarted, ID: f.ID})
	bridge(near, far)
	return nil
}

const dialTimeout = 20 * time.Second

// halfCloser is what tcp and unix connections share: an end in one direction.
type halfCloser interface {
	CloseWrite() error
}

// bridge copies both ways, passes each end on by itself, and returns when both are through.
func bridge(a, b net.Conn) {
	var wg sync.WaitGroup
	pump := func(dst, src net.Conn) {
		if _, err := io.Copy(dst, src); err != nil {
			_ = dst.Close() // a broken direction breaks the connection, as a reset would
			_ = src.Close()
			return
		}
		if h, ok := dst.(halfCloser); ok {
			_ = h.CloseWrite()
		}
	}
	wg.Go(func() { pump(a, b) })
	wg.Go(func() { pump(b, a) })
	wg.Wait()
	_ = a.Close()
	_ = b.Close()
}
