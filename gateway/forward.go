package gateway

import (
	"net"
	"strconv"
	"sync"

	"charm.land/ssh"
	gossh "golang.org/x/crypto/ssh"

	"github.com/berth-gpu/berth/container"
)

// forwards are one session's remote forwards: what listens inside the container for it. They
// are the session's own: nobody else sees or cancels them, and they end with it.
type forwards struct {
	mu   sync.Mutex
	open map[string]*container.Listener // by what was asked: tcp host:port or unix path
}

// maxForwards bounds the listeners of one session.
const maxForwards = 64

// forwardRequest serves tcpip-forward and its kin, RFC 4254 section 7.1 and OpenSSH's
// PROTOCOL section 2.4.
func forwardRequest(ctx ssh.Context, _ *ssh.Server, req *gossh.Request) (bool, []byte) {
	conn, ok := ctx.Value(ssh.ContextKeyConn).(*gossh.ServerConn)
	if !ok {
		return false, nil
	}
	sess, ok := conn.Permissions.ExtraData[sessionKey{}].(*session)
	if !ok || !sess.admits() {
		return false, nil
	}
	f := remoteForward{session: sess, conn: conn}
	switch req.Type {
	case "tcpip-forward", "cancel-tcpip-forward":
		if gossh.Unmarshal(req.Payload, &f.tcp) != nil || f.tcp.Port > 65535 {
			return false, nil
		}
		f.network, f.address = "tcp", joinHostPort(listenHost(f.tcp.Host), f.tcp.Port)
	default:
		var p struct{ Path string }
		if gossh.Unmarshal(req.Payload, &p) != nil || p.Path == "" {
			return false, nil
		}
		f.network, f.address, f.path = "unix", p.Path, p.Path
	}
	if req.Type == "cancel-tcpip-forward" || req.Type == "cancel-streamlocal-forward@openssh.com" {
		return sess.forwards.cancel(f.key()), nil
	}
	return f.start()
}

// remoteForward is one request to listen inside the container.
type remoteForward struct {
	session          *session
	conn             *gossh.ServerConn
	network, address string
	tcp              struct {
		Host string
		Port uint32
	}
	path string
}

// listenHost keeps a forward on loopback unless the client named an address: inside the
// container "every address" is still nobody else's.
func listenHost(host string) string {
	switch host {
	case "", "*":
		return "0.0.0.0"
	case "localhost":
		return "127.0.0.1"
	}
	return host
}

func (f remoteForward) key() string { return f.network + " " + f.address }

func (f remoteForward) start() (bool, []byte) {
	s := f.session.live.s
	a, err := f.session.live.ready(s.ctx)
	if err != nil {
		return false, nil
	}
	ln, err := a.Listen(s.ctx, f.network, f.address)
	if err != nil {
		s.Log.Debug("remote forward refused", "session", f.session.id, "cause", err)
		return false, nil
	}
	var reply []byte
	if f.network == "tcp" && f.tcp.Port == 0 {
		f.tcp.Port = portOf(ln.Address)
		f.address = joinHostPort(listenHost(f.tcp.Host), f.tcp.Port)
		reply = gossh.Marshal(&struct{ Port uint32 }{f.tcp.Port})
	}
	if !f.session.forwards.add(f.key(), ln) {
		ln.Close()
		return false, nil
	}
	go s.guarded("remote forward", func() { f.serve(ln) })
	return true, reply
}

// serve opens a channel to the client for each connection, until the forward ends.
func (f remoteForward) serve(ln *container.Listener) {
	for {
		in, err := ln.Accept()
		if err != nil {
			f.session.forwards.cancel(f.key())
			return
		}
		go f.session.live.s.guarded("remote forward", func() { f.carry(in) })
	}
}

func (f remoteForward) carry(in container.Incoming) {
	kind, payload := "forwarded-streamlocal@openssh.com", gossh.Marshal(&struct{ Path, Reserved string }{f.path, ""})
	if f.network == "tcp" {
		host, port, _ := net.SplitHostPort(in.Address)
		n, _ := strconv.ParseUint(port, 10, 16)
		kind, payload = "forwarded-tcpip", gossh.Marshal(&struct {
			Host       string
			Port       uint32
			OriginHost string
			OriginPort uint32
		}{f.tcp.Host, f.tcp.Port, host, uint32(n)})
	}
	f.session.carryTo(f.conn, in, outgoing{kind, payload, "remote forward " + f.address})
}

// outgoing is a channel that we open to the client.
type outgoing struct {
	kind    string
	payload []byte
	what    string // for the host's screen
}

// carryTo joins a connection made inside the container to a channel opened to the client.
func (x *session) carryTo(conn *gossh.ServerConn, in container.Incoming, o outgoing) {
	raw, reqs, err := conn.OpenChannel(o.kind, o.payload)
	if err != nil {
		in.Refuse()
		return
	}
	go gossh.DiscardRequests(reqs)
	near, err := in.Take()
	if err != nil {
		_ = raw.Close()
		return
	}
	c := &channel{session: x, raw: raw}
	x.track(c, o.what)
	defer x.untrack(c)
	join(raw, near)
}

func (f *forwards) add(key string, ln *container.Listener) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.open == nil || f.open[key] != nil || len(f.open) >= maxForwards {
		return false
	}
	f.open[key] = ln
	return true
}

func (f *forwards) cancel(key string) bool {
	f.mu.Lock()
	ln := f.open[key]
	delete(f.open, key)
	f.mu.Unlock()
	if ln == nil {
		return false
	}
	ln.Close()
	return true
}

// close ends every forward; nothing can be added afterwards.
func (f *forwards) close() {
	f.mu.Lock()
	open := f.open
	f.open = nil
	f.mu.Unlock()
	for _, ln := range open {
		ln.Close()
	}
}

func portOf(address string) uint32 {
	_, port, _ := net.SplitHostPort(address)
	n, _ := strconv.ParseUint(port, 10, 16)
	return uint32(n)
}
