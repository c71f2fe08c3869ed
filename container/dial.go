package container

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berth-gpu/berth/container/agent"
)

// ErrAgentGone is returned while no agent is connected, and by everything that was
// running through one that went away.
var ErrAgentGone = errors.New("the container's agent is not connected")

// ErrNoProgram is wrapped by a start that failed because the image has no such program or shell.
var ErrNoProgram = errors.New("no such program")

// AgentOptions says where an Agent listens and whom it believes.
type AgentOptions struct {
	Dir    string                                        // the link's run directory; the socket is made in it
	Log    *slog.Logger                                  // if nil, slog.Default
	OnCall func(context.Context, agent.Call) agent.Reply // the guest's berth command; if nil, refused
}

// Agent is the gateway's end of one container's agent: a listener on a socket that the
// container sees read-only, and the connection of the one process that is believed, the
// container's PID 1. It is safe for concurrent use.
type Agent struct {
	o    AgentOptions
	ln   *net.UnixListener
	last atomic.Uint64 // request ids, never used twice, nor by an earlier gateway

	mu      sync.Mutex // guards what is below; never held across I/O
	pid     int        // the peer we believe; 0: nobody yet
	up      *peer      // nil while away
	changed chan struct{}
	closed  bool
}

// peer is one connection of the agent.
type peer struct {
	conn  *agent.Conn
	hello agent.Hello
	out   sync.Mutex // orders frames to the agent
	gone  chan struct{}

	mu      sync.Mutex
	pending map[uint64]*Process
}

// ListenAgent makes the socket in o.Dir, replacing one that an earlier gateway left, and
// accepts the agent once Expect has said which process it is.
func ListenAgent(o AgentOptions) (*Agent, error) {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("listen for agent: %w", err)
	}
	ln, err := listenIn(o.Dir, "agent.sock")
	if err != nil {
		return nil, err
	}
	a := &Agent{o: o, ln: ln, changed: make(chan struct{})}
	a.last.Store(uint64(time.Now().UnixNano()))
	go a.accept()
	return a, nil
}

// listenIn listens on dir/name however long dir is: sun_path, unix(7), holds 108 bytes. The
// directory is the host's own; the container cannot write in it.
func listenIn(dir, name string) (*net.UnixListener, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("listen for agent: %w", err)
	}
	defer func() { _ = d.Close() }()
	if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("listen for agent: %w", err)
	}
	short := "/proc/self/fd/" + strconv.Itoa(int(d.Fd())) + "/" + name
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: short, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("listen for agent: %w", err)
	}
	ln.SetUnlinkOnClose(false) // the short name means nothing later; the directory goes with the link
	if err := os.Chmod(filepath.Join(dir, name), 0o666); err != nil {
		_ = ln.Close()
		return nil, fmt.Errorf("listen for agent: %w", err)
	}
	return ln, nil
}

// Expect says which process on the host is the agent. Nobody else's connection is used: a
// guest can reach the socket too, but cannot be PID 1.
func (a *Agent) Expect(pid int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.pid = pid
	a.wake()
}

// wake tells everyone who waits that something changed. The caller holds mu.
func (a *Agent) wake() {
	close(a.changed)
	a.changed = make(chan struct{})
}

// Ready waits until the agent is connected and returns what it said of itself.
func (a *Agent) Ready(ctx context.Context) (agent.Hello, error) {
	p, err := a.wait(ctx)
	if err != nil {
		return agent.Hello{}, err
	}
	return p.hello, nil
}

func (a *Agent) wait(ctx context.Context) (*peer, error) {
	for {
		a.mu.Lock()
		p, changed, closed := a.up, a.changed, a.closed
		a.mu.Unlock()
		switch {
		case closed:
			return nil, ErrAgentGone
		case p != nil:
			return p, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", ErrAgentGone, ctx.Err())
		}
	}
}

// Gone returns a channel that is closed once the connection that is up now is lost, or is
// closed already if there is none.
func (a *Agent) Gone() <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.up != nil {
		return a.up.gone
	}
	gone := make(chan struct{})
	close(gone)
	return gone
}

// Close stops listening and drops the agent; what runs inside goes on.
func (a *Agent) Close() {
	a.mu.Lock()
	p := a.up
	a.up, a.closed = nil, true
	a.wake()
	a.mu.Unlock()
	_ = a.ln.Close()
	if p != nil {
		_ = p.conn.Unix.Close()
	}
}

func (a *Agent) accept() {
	for {
		c, err := a.ln.AcceptUnix()
		if err != nil {
			return
		}
		go a.admit(c)
	}
}

// How long a new connection may take to be believed and to introduce itself.
const helloTimeout = 10 * time.Second

// admit makes c the agent's connection if its other end is the container's PID 1.
func (a *Agent) admit(c *net.UnixConn) {
	ctx, cancel := context.WithTimeout(context.Background(), helloTimeout)
	defer cancel()
	p := &peer{conn: &agent.Conn{Unix: c}, gone: make(chan struct{}), pending: make(map[uint64]*Process)}
	if err := a.believe(ctx, c); err != nil {
		a.o.Log.Warn("refused a connection to the agent's socket", "cause", err)
		_ = c.Close()
		return
	}
	_ = c.SetReadDeadline(time.Now().Add(helloTimeout))
	f, err := p.conn.Receive()
	if err != nil || f.Op != agent.OpHello || f.Hello == nil {
		a.o.Log.Warn("the agent did not introduce itself", "cause", err)
		_ = c.Close()
		return
	}
	_ = c.SetReadDeadline(time.Time{})
	p.hello = *f.Hello
	if !a.setPeer(p) {
		_ = c.Close()
		return
	}
	a.receive(p)
}

func (a *Agent) setPeer(p *peer) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return false
	}
	if a.up != nil {
		_ = a.up.conn.Unix.Close()
	}
	a.up = p
	a.wake()
	return true
}

// believe waits until the agent's pid is known and compares it with the peer's, as the
// kernel noted it at connect (SO_PEERCRED, unix(7)).
func (a *Agent) believe(ctx context.Context, c *net.UnixConn) error {
	cred, err := peerCred(c)
	if err != nil {
		return err
	}
	for {
		a.mu.Lock()
		pid, changed := a.pid, a.changed
		a.mu.Unlock()
		if pid == int(cred.Pid) {
			return nil
		}
		if pid != 0 {
			return fmt.Errorf("peer is process %d, not the agent (%d)", cred.Pid, pid)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func peerCred(c *net.UnixConn) (*unix.Ucred, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("ask for peer: %w", err)
	}
	var cred *unix.Ucred
	var inner error
	err = raw.Control(func(fd uintptr) {
		cred, inner = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err = errors.Join(err, inner); err != nil {
		return nil, fmt.Errorf("ask for peer: %w", err)
	}
	return cred, nil
}

// receive reads the agent's frames until the connection ends or breaks the protocol.
func (a *Agent) receive(p *peer) {
	var err error
	for {
		var f *agent.Frame
		if f, err = p.conn.Receive(); err != nil {
			break
		}
		a.take(p, f)
	}
	_ = p.conn.Unix.Close()
	a.mu.Lock()
	if a.up == p {
		a.up = nil
		a.wake()
	}
	a.mu.Unlock()
	p.fail(fmt.Errorf("%w: %w", ErrAgentGone, err))
	close(p.gone)
}

func (a *Agent) take(p *peer, f *agent.Frame) {
	switch f.Op {
	case agent.OpStarted, agent.OpExited:
		p.settle(f)
	case agent.OpAccepted:
		p.accepted(f)
	case agent.OpCall:
		if f.Call != nil {
			go a.call(p, f)
		}
	default: // pong, and whatever a newer agent may say
	}
}

// accepted hands a connection to the listener it belongs to.
func (p *peer) accepted(f *agent.Frame) {
	in := Incoming{peer: p, conn: f.Conn}
	if f.Dial != nil {
		in.Network, in.Address = f.Dial.Network, f.Dial.Address
	}
	p.mu.Lock()
	proc := p.pending[f.ID]
	p.mu.Unlock()
	if proc == nil || proc.listener == nil {
		go in.Refuse() // the frame's reader never writes: both sides could wait for each other
		return
	}
	go proc.listener.offer(in)
}

// call answers the guest's berth command.
func (a *Agent) call(p *peer, f *agent.Frame) {
	reply := agent.Reply{Error: "not available"}
	if a.o.OnCall != nil {
		ctx, cancel := context.WithTimeout(context.Background(), helloTimeout)
		defer cancel()
		reply = a.o.OnCall(ctx, *f.Call)
	}
	_ = p.send(&agent.Frame{Op: agent.OpReply, ID: f.ID, Reply: &reply})
}

// How long a frame to the agent may wait for room: an agent that reads nothing is given up.
const sendTimeout = 10 * time.Second

func (p *peer) send(f *agent.Frame) error {
	p.out.Lock()
	defer p.out.Unlock()
	_ = p.conn.Unix.SetWriteDeadline(time.Now().Add(sendTimeout))
	if err := p.conn.Send(f); err != nil {
		_ = p.conn.Unix.Close() // half a frame may be out: nothing after it makes sense
		return fmt.Errorf("%w: %w", ErrAgentGone, err)
	}
	return nil
}
