package container

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berth-gpu/berth/container/agent"
)

// Process is something that runs in the container for one channel: a command, a terminal,
// an sftp server, or a connection that was dialled there.
type Process struct {
	Stdin, Stdout, Stderr *os.File      // our ends of a command's pipes; nil otherwise
	Stream                *net.UnixConn // our end of a terminal, sftp or dialled connection; nil otherwise
	Attached              bool          // the terminal was there already: the guest came back to it
	Number                int           // the terminal's; 0 otherwise

	id       uint64
	peer     *peer
	listener *Listener     // set for a request to listen
	started  chan struct{} // closed when the agent answered or the process ended
	done     chan struct{} // closed when it ended

	once    sync.Once // closes started
	endOnce sync.Once // closes done
	err     error     // why it could not start, or was lost; set before started or done closes
	exit    agent.Exit

	terminals []agent.Terminal // the answer to a request for them
}

// startTimeout bounds how long the agent may take to start something.
const startTimeout = 25 * time.Second

// Exec starts a command on three fresh pipes, whose bytes never pass through the agent.
func (a *Agent) Exec(ctx context.Context, st agent.Start) (*Process, error) {
	st.Mode = agent.ModeExec
	var theirs [3]*os.File
	p := &Process{}
	for i, end := range []**os.File{&p.Stdin, &p.Stdout, &p.Stderr} {
		r, w, err := os.Pipe()
		if err != nil {
			closeFiles(append(theirs[:], p.Stdin, p.Stdout, p.Stderr))
			return nil, fmt.Errorf("make pipes: %w", err)
		}
		if i == 0 {
			*end, theirs[i] = w, r
		} else {
			*end, theirs[i] = r, w
		}
	}
	widen(p.Stdin, p.Stdout)
	return p, a.start(ctx, p, &agent.Frame{Op: agent.OpStart, Start: &st, Files: theirs[:]})
}

// pipeSize is what a command's stdin and stdout may hold: fewer wake-ups per byte. The kernel
// grants it to unprivileged users up to their share, pipe(7), so a refusal is no error.
const pipeSize = 1 << 20

func widen(files ...*os.File) {
	for _, f := range files {
		if raw, err := f.SyscallConn(); err == nil {
			_ = raw.Control(func(fd uintptr) { _, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, pipeSize) })
		}
	}
}

// Terminal starts a login shell or a command on a terminal, or returns to the terminal that
// the guest was cut off from. Stream speaks the frames of agent.StreamWriter and StreamReader.
func (a *Agent) Terminal(ctx context.Context, st agent.Start) (*Process, error) {
	st.Mode = agent.ModeTerminal
	return a.stream(ctx, &agent.Frame{Op: agent.OpStart, Start: &st})
}

// SFTP starts an sftp server; Stream speaks the sftp protocol itself.
func (a *Agent) SFTP(ctx context.Context, st agent.Start) (*Process, error) {
	st.Mode = agent.ModeSFTP
	return a.stream(ctx, &agent.Frame{Op: agent.OpStart, Start: &st})
}

// Dial connects to an address inside the container's network; network is tcp or unix.
func (a *Agent) Dial(ctx context.Context, network, address string) (*net.UnixConn, error) {
	p, err := a.stream(ctx, &agent.Frame{Op: agent.OpDial, Dial: &agent.Dial{Network: network, Address: address}})
	if err != nil {
		return nil, err
	}
	p.forget()
	return p.Stream, nil
}

// stream makes a socket pair, keeps one end and sends f with the other.
func (a *Agent) stream(ctx context.Context, f *agent.Frame) (*Process, error) {
	ours, theirs, err := streamPair()
	if err != nil {
		return nil, err
	}
	f.Files = []*os.File{theirs}
	p := &Process{Stream: ours}
	return p, a.start(ctx, p, f)
}

// start sends f for p and waits for the agent's answer. On failure p is closed.
func (a *Agent) start(ctx context.Context, p *Process, f *agent.Frame) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	err := a.begin(ctx, p, f)
	if err != nil {
		p.Close()
		return err
	}
	return nil
}

func (a *Agent) begin(ctx context.Context, p *Process, f *agent.Frame) error {
	peer, err := a.wait(ctx)
	if err != nil {
		closeFiles(f.Files)
		return err
	}
	p.peer, p.id = peer, a.last.Add(1)
	p.started, p.done = make(chan struct{}), make(chan struct{})
	f.ID = p.id
	peer.mu.Lock()
	peer.pending[p.id] = p
	peer.mu.Unlock()
	if err := peer.send(f); err != nil {
		p.forget()
		return err
	}
	select {
	case <-p.started:
		return p.err
	case <-peer.gone:
		return ErrAgentGone
	case <-ctx.Done():
		p.forget()
		return fmt.Errorf("start in container: %w", ctx.Err())
	}
}

// Wait returns how the process ended, once it has. It does not wait for its output.
func (p *Process) Wait(ctx context.Context) (agent.Exit, error) {
	select {
	case <-p.done:
		return p.exit, p.err
	case <-ctx.Done():
		return agent.Exit{}, ctx.Err()
	}
}

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Signal sends the signal with this RFC 4254 name to the process's group.
func (p *Process) Signal(name string) error {
	return p.peer.send(&agent.Frame{Op: agent.OpSignal, ID: p.id, Signal: name})
}

// Close closes our ends. A command then meets the end of its input and a closed output; a
// terminal is left to itself and waits for its guest.
func (p *Process) Close() {
	closeFiles([]*os.File{p.Stdin, p.Stdout, p.Stderr})
	if p.Stream != nil {
		_ = p.Stream.Close()
	}
	p.forget()
}

func (p *Process) forget() {
	if p.peer == nil {
		return
	}
	p.peer.mu.Lock()
	defer p.peer.mu.Unlock()
	delete(p.peer.pending, p.id)
}

// settle applies the agent's answer to the request it belongs to; an answer to nothing of
// ours is dropped.
func (p *peer) settle(f *agent.Frame) {
	p.mu.Lock()
	proc := p.pending[f.ID]
	if f.Op == agent.OpExited {
		delete(p.pending, f.ID)
	}
	p.mu.Unlock()
	if proc == nil {
		return
	}
	if f.Op == agent.OpExited {
		proc.ended(f.Exit)
		return
	}
	proc.once.Do(func() {
		proc.Attached, proc.Number, proc.terminals = f.Attached, f.Terminal, f.Terminals
		if proc.listener != nil && f.Dial != nil {
			proc.listener.Address = f.Dial.Address
		}
		if f.Error != "" {
			proc.err = errors.New(f.Error)
			if f.NotFound {
				proc.err = fmt.Errorf("%w: %s", ErrNoProgram, f.Error)
			}
		}
		close(proc.started)
	})
}

func (p *Process) ended(e *agent.Exit) {
	p.endOnce.Do(func() {
		if e != nil {
			p.exit = *e
		}
		p.once.Do(func() { close(p.started) })
		close(p.done)
	})
}

// fail ends everything that ran through the peer.
func (p *peer) fail(err error) {
	p.mu.Lock()
	pending := p.pending
	p.pending = make(map[uint64]*Process)
	p.mu.Unlock()
	for _, proc := range pending {
		proc.endOnce.Do(func() {
			proc.err = err
			proc.once.Do(func() { close(proc.started) })
			close(proc.done)
		})
	}
}

func closeFiles(files []*os.File) {
	for _, f := range files {
		if f != nil {
			_ = f.Close()
		}
	}
}
