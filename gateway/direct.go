package gateway

import (
	"io"
	"sync"

	gossh "golang.org/x/crypto/ssh"
)

// directTCP is -L, -D and -W: a connection made inside the container, RFC 4254 section 7.2.
func (x *session) directTCP(_ *gossh.ServerConn, nc gossh.NewChannel) {
	var p struct {
		Host       string
		Port       uint32
		OriginHost string
		OriginPort uint32
	}
	if err := gossh.Unmarshal(nc.ExtraData(), &p); err != nil || p.Port > 65535 {
		_ = nc.Reject(gossh.ConnectionFailed, "malformed forward request")
		return
	}
	x.direct(nc, "tcp", joinHostPort(p.Host, p.Port))
}

// directUnix is a local forward to a unix socket, OpenSSH's PROTOCOL section 2.4.
func (x *session) directUnix(_ *gossh.ServerConn, nc gossh.NewChannel) {
	var p struct {
		Path, Reserved string
		Port           uint32
	}
	if err := gossh.Unmarshal(nc.ExtraData(), &p); err != nil {
		_ = nc.Reject(gossh.ConnectionFailed, "malformed forward request")
		return
	}
	x.direct(nc, "unix", p.Path)
}

func (x *session) direct(nc gossh.NewChannel, network, address string) {
	s := x.live.s
	a, err := x.live.ready(s.ctx)
	if err != nil {
		_ = nc.Reject(gossh.ConnectionFailed, guestText(err))
		return
	}
	far, err := a.Dial(s.ctx, network, address)
	if err != nil {
		_ = nc.Reject(gossh.ConnectionFailed, err.Error())
		return
	}
	defer func() { _ = far.Close() }()
	raw, reqs, err := nc.Accept()
	if err != nil {
		return
	}
	c := &channel{session: x, raw: raw, gone: make(chan struct{})}
	x.track(c, "forward "+address)
	defer x.untrack(c)
	go gossh.DiscardRequests(reqs)
	join(raw, far)
}

// halfCloser is one direction's end, which channels and sockets both have.
type halfCloser interface {
	io.ReadWriteCloser
	CloseWrite() error
}

// join copies both ways, passing each end on by itself.
func join(a, b halfCloser) {
	var both sync.WaitGroup
	way := func(dst, src halfCloser) {
		if pump(dst, src) != nil {
			_ = src.Close()
		}
		_ = dst.CloseWrite()
	}
	both.Go(func() { way(a, b) })
	both.Go(func() { way(b, a) })
	both.Wait()
	_ = a.Close()
	_ = b.Close()
}
