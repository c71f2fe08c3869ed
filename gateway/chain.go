package gateway

import (
	"cmp"
	"net"
	"time"

	"charm.land/ssh"
	"charm.land/wish/v2"
	gossh "golang.org/x/crypto/ssh"
)

// handshakeTimeout is the default of Server.Handshake.
const handshakeTimeout = 30 * time.Second

// newSSH builds the SSH server: Wish runs the listener and the handshake; what comes through an
// authenticated connection is ours from the raw channel on, because charm's own session is
// made for programs that the server draws: it rewrites line ends, has no exit-signal, and its
// forwards would reach the host's network.
func (s *Server) newSSH() (*ssh.Server, error) {
	keys := func(srv *ssh.Server) error { srv.HostSigners = s.keys; return nil } // or Wish makes one in the working directory
	srv, err := wish.NewServer(wish.WithVersion(serverName), keys)
	if err != nil {
		return nil, err
	}
	srv.HandshakeTimeout = cmp.Or(s.Handshake, handshakeTimeout)
	srv.ConnCallback = s.admitConn
	srv.ServerConfigCallback = s.sshConfig
	srv.ConnectionFailedCallback = func(c net.Conn, err error) {
		s.Log.Debug("handshake failed", "address", c.RemoteAddr(), "cause", err)
	}
	srv.ChannelHandlers = map[string]ssh.ChannelHandler{
		"session":                        s.withSession((*session).channel),
		"direct-tcpip":                   s.withSession((*session).directTCP),
		"direct-streamlocal@openssh.com": s.withSession((*session).directUnix),
		"default":                        refuseChannel,
	}
	srv.RequestHandlers = map[string]ssh.RequestHandler{
		"tcpip-forward":                          forwardRequest,
		"cancel-tcpip-forward":                   forwardRequest,
		"streamlocal-forward@openssh.com":        forwardRequest,
		"cancel-streamlocal-forward@openssh.com": forwardRequest,
		"default":                                globalRequest,
	}
	srv.SubsystemHandlers = map[string]ssh.SubsystemHandler{}
	return srv, nil
}

// admitConn makes the connection known to its own authentication.
func (s *Server) admitConn(ctx ssh.Context, c net.Conn) net.Conn {
	dc, ok := c.(*doorConn)
	if !ok {
		return nil // not from a door of ours
	}
	offer, err := dc.hello()
	if err != nil {
		s.Log.Debug("handshake failed", "address", dc.RemoteAddr(), "cause", err)
		return nil
	}
	dc.ciphers = offer
	ctx.SetValue(doorConnKey{}, dc)
	return dc
}

type doorConnKey struct{}

// sshConfig is the configuration of one connection, with its own authentication.
func (s *Server) sshConfig(ctx ssh.Context) *gossh.ServerConfig {
	dc, _ := ctx.Value(doorConnKey{}).(*doorConn)
	e := &entry{s: s, conn: dc, ctx: ctx}
	return &gossh.ServerConfig{
		Config:                      gossh.Config{Ciphers: dc.ciphers},
		MaxAuthTries:                maxAuthTries,
		BannerCallback:              e.banner,
		PublicKeyCallback:           e.offered,
		VerifiedPublicKeyCallback:   e.proved,
		KeyboardInteractiveCallback: e.keyless,
		PreAuthConnCallback:         func(c gossh.ServerPreAuthConn) { ctx.SetValue(preAuthKey{}, c) },
	}
}

// maxAuthTries lets people with many keys in their agent reach the right one.
const maxAuthTries = 20

// withSession finds the session that authentication made for this connection.
func (s *Server) withSession(handle func(*session, *gossh.ServerConn, gossh.NewChannel)) ssh.ChannelHandler {
	return func(_ *ssh.Server, conn *gossh.ServerConn, nc gossh.NewChannel, _ ssh.Context) {
		sess, ok := conn.Permissions.ExtraData[sessionKey{}].(*session)
		if !ok || !sess.admits() {
			_ = nc.Reject(gossh.Prohibited, "this link has ended")
			return
		}
		handle(sess, conn, nc)
	}
}

func refuseChannel(_ *ssh.Server, _ *gossh.ServerConn, nc gossh.NewChannel, _ ssh.Context) {
	_ = nc.Reject(gossh.UnknownChannelType, "not offered here: "+nc.ChannelType())
}

// globalRequest answers what clients ask of the connection itself. Keepalives get an answer;
// what is not known is refused, which ends nothing.
func globalRequest(_ ssh.Context, _ *ssh.Server, req *gossh.Request) (bool, []byte) {
	return req.Type == "keepalive@openssh.com", nil
}
