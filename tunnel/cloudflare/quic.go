package cloudflare

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/berth-gpu/berth/tunnel/internal/wire"
)

// serveQUIC runs one connection over QUIC until it ends. We open the control stream, the edge
// opens one for each request.
func (c *edgeConn) serveQUIC(ctx context.Context) error {
	conn, done, err := c.dialQUIC(ctx)
	if err != nil {
		return &dialError{classify(err)}
	}
	defer done()
	defer context.AfterFunc(ctx, func() { _ = conn.CloseWithError(0, "") })()
	first, err := conn.OpenStream()
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() {
		err := c.control(conn.Context(), controlStream{first}, conn.LocalAddr())
		if err == nil {
			c.streams.wait(ctx) // we said goodbye: what runs may end
		}
		_ = conn.CloseWithError(0, "")
		ended <- err
	}()
	for {
		s, err := conn.AcceptStream(conn.Context())
		if err != nil {
			return quicEnd(context.Cause(conn.Context()), <-ended)
		}
		go c.guarded(s)
	}
}

// quicEnd says why a connection ended: silence means that UDP no longer gets through.
func quicEnd(conn, control error) error {
	var idle *quic.IdleTimeoutError
	switch {
	case control == nil:
		return nil
	case errors.As(conn, &idle):
		return &dialError{errQUICSilent}
	case errors.Is(control, errConnEnded), errors.Is(control, conn):
		return errConnEnded
	}
	return control
}

var errQUICSilent = errors.New("no packet came from the edge for 5 s: UDP is blocked")

// dialQUIC connects from the port that this connection used before, if it is free: to the edge
// a reconnect then looks like what it is.
func (c *edgeConn) dialQUIC(ctx context.Context) (conn *quic.Conn, done func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	to, err := net.ResolveUDPAddr("udp", c.addr)
	if err != nil {
		return nil, nil, err
	}
	socket, err := net.ListenUDP("udp", &net.UDPAddr{Port: c.t.udpPort(c.index)})
	if err != nil {
		if socket, err = net.ListenUDP("udp", nil); err != nil {
			return nil, nil, err
		}
	}
	if local, ok := socket.LocalAddr().(*net.UDPAddr); ok {
		c.t.keepUDPPort(c.index, local.Port)
	}
	tr := &quic.Transport{Conn: socket}
	done = func() { _ = tr.Close(); _ = socket.Close() }
	conn, err = tr.Dial(ctx, to, &tls.Config{ServerName: nameQUIC, NextProtos: []string{alpnQUIC}, RootCAs: c.t.roots, MinVersion: tls.VersionTLS13}, quicConfig(to))
	if err != nil {
		done()
		return nil, nil, err
	}
	return conn, done, nil
}

func quicConfig(to *net.UDPAddr) *quic.Config {
	conf := &quic.Config{
		HandshakeIdleTimeout: quicHandshake, MaxIdleTimeout: quicIdle, KeepAlivePeriod: quicKeepAlive,
		MaxIncomingStreams: 1 << 20, MaxIncomingUniStreams: 1 << 20, EnableDatagrams: true,
		InitialStreamReceiveWindow: 512 << 10, MaxStreamReceiveWindow: 2 << 20,
		InitialConnectionReceiveWindow: 4 << 20, MaxConnectionReceiveWindow: 30 << 20,
		InitialPacketSize: 1252,
	}
	if to.IP.To4() != nil {
		conf.InitialPacketSize = 1232
	}
	return conf
}

// controlStream is the control stream over QUIC.
type controlStream struct{ *quic.Stream }

// Close ends both directions.
func (s controlStream) Close() error {
	s.CancelRead(0)
	return s.Stream.Close()
}

// guarded serves one stream of the edge; a panic in it ends nothing else.
func (c *edgeConn) guarded(s *quic.Stream) {
	defer func() {
		if r := recover(); r != nil {
			c.t.log.Error("panic", "in", "tunnel stream", "cause", r)
			s.CancelWrite(0)
		}
		s.CancelRead(0)
		_ = s.Close()
	}()
	_ = s.SetReadDeadline(time.Now().Add(controlTimeout))
	sig, err := wire.ReadSignature(s)
	if err != nil {
		return
	}
	switch sig {
	case wire.SignatureData:
		err = c.serveStream(s)
	case wire.SignatureRPC:
		err = c.serveRPC(s)
	default:
		err = wire.ErrMalformed
	}
	if err != nil {
		c.t.log.Debug("a stream of the edge failed", "cause", err)
		s.CancelWrite(0)
	}
}

// serveRPC answers the edge where it is the client: it may push a configuration, and nothing else.
func (c *edgeConn) serveRPC(s *quic.Stream) error {
	_ = s.SetDeadline(time.Now().Add(registerTimeout))
	for {
		m, err := wire.Read(s)
		if err != nil {
			return nil //nolint:nilerr // the edge ends the stream when it has what it wanted
		}
		if answer := c.answerRPC(m); answer != nil {
			if _, err := s.Write(answer); err != nil {
				return err
			}
		}
	}
}

func (c *edgeConn) answerRPC(m *wire.Message) []byte {
	switch {
	case m.Kind == wire.KindBootstrap:
		return wire.EncodeCapability(m.ID, 0)
	case m.Kind != wire.KindCall:
		return nil
	case m.Call.Interface != wire.Configurator || m.Call.Method != wire.MethodUpdate:
		return wire.EncodeException(m.ID, wire.ExceptionError{Kind: wire.ExceptionUnimplemented, Reason: "not served"})
	}
	var push wire.Update
	if err := m.Decode(&push); err != nil {
		return wire.EncodeException(m.ID, wire.ExceptionError{Kind: wire.ExceptionFailed, Reason: "unreadable"})
	}
	return wire.EncodeResults(m.ID, &wire.Applied{Version: c.t.apply(push.Version)})
}
