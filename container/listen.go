package container

import (
	"context"
	"fmt"
	"net"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/berth-gpu/berth/container/agent"
)

// Listener listens inside a container, for a guest's remote forward.
type Listener struct {
	Address string // where it listens, with the port that was chosen

	peer     *peer
	id       uint64
	incoming chan Incoming
	once     sync.Once
	done     chan struct{}
}

// Incoming is a connection that was made to a Listener inside the container.
type Incoming struct {
	Network, Address string // who connected, as the container sees it

	peer *peer
	conn uint64
}

// maxIncoming is how many connections may wait to be taken before more are turned away.
const maxIncoming = 64

// Listen listens inside the container's network; network is tcp or unix. An empty unix address
// is a socket in a private directory, for the guest alone.
func (a *Agent) Listen(ctx context.Context, network, address string) (*Listener, error) {
	p := &Process{listener: &Listener{incoming: make(chan Incoming, maxIncoming), done: make(chan struct{})}}
	f := &agent.Frame{Op: agent.OpListen, Dial: &agent.Dial{Network: network, Address: address}}
	if err := a.start(ctx, p, f); err != nil {
		return nil, err
	}
	l := p.listener
	l.peer, l.id = p.peer, p.id
	return l, nil
}

// Accept returns the next connection, or net.ErrClosed after Close or when the agent is gone.
func (l *Listener) Accept() (Incoming, error) {
	select {
	case in := <-l.incoming:
		return in, nil
	case <-l.done:
		return Incoming{}, net.ErrClosed
	case <-l.peer.gone:
		return Incoming{}, net.ErrClosed
	}
}

// Close stops listening.
func (l *Listener) Close() {
	l.once.Do(func() {
		close(l.done)
		l.peer.mu.Lock()
		delete(l.peer.pending, l.id)
		l.peer.mu.Unlock()
		_ = l.peer.send(&agent.Frame{Op: agent.OpClose, ID: l.id})
	})
}

// offer queues a connection; one too many is turned away.
func (l *Listener) offer(in Incoming) {
	select {
	case l.incoming <- in:
	default:
		in.Refuse()
	}
}

// Take returns the connection.
func (in Incoming) Take() (*net.UnixConn, error) {
	ours, theirs, err := streamPair()
	if err != nil {
		return nil, err
	}
	err = in.peer.send(&agent.Frame{Op: agent.OpTake, Conn: in.conn, Files: []*os.File{theirs}})
	if err != nil {
		_ = ours.Close()
		return nil, err
	}
	return ours, nil
}

// Refuse turns the connection away.
func (in Incoming) Refuse() {
	_ = in.peer.send(&agent.Frame{Op: agent.OpTake, Conn: in.conn})
}

// streamPair makes a connected pair: ours to use here, theirs to pass to the agent.
func streamPair() (ours *net.UnixConn, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("make stream: %w", err)
	}
	mine := os.NewFile(uintptr(fds[0]), "stream")
	theirs = os.NewFile(uintptr(fds[1]), "stream")
	conn, err := net.FileConn(mine)
	_ = mine.Close()
	if err != nil {
		_ = theirs.Close()
		return nil, nil, fmt.Errorf("make stream: %w", err)
	}
	return conn.(*net.UnixConn), theirs, nil //nolint:forcetypeassert // a unix socket pair is nothing else
}
