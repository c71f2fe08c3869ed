package tunneltest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/berth-gpu/berth/tunnel/internal/wire"
)

// quicCarrier is a QUIC connection. The connector opens the control stream, the edge the others.
type quicCarrier struct {
	edge *Edge
	conn *quic.Conn
}

// listenQUIC serves QUIC on the UDP port of the TCP port's number.
func (p *port) listenQUIC() error {
	addr := net.UDPAddrFromAddrPort(p.tcp.Addr().(*net.TCPAddr).AddrPort())
	udp, err := net.ListenUDP("udp", addr)
	if err != nil {
		return err
	}
	p.packets = &lossyPackets{PacketConn: udp}
	tr := &quic.Transport{Conn: p.packets}
	l, err := tr.Listen(p.edge.tlsConfig(nameQUIC, alpnQUIC), &quic.Config{
		MaxIdleTimeout: 5 * time.Second, KeepAlivePeriod: time.Second, EnableDatagrams: true, MaxIncomingStreams: 16,
	})
	if err != nil {
		_ = udp.Close()
		return err
	}
	p.quic = func() {
		_ = l.Close()
		_ = tr.Close()
		_ = udp.Close()
	}
	go func() {
		for {
			conn, err := l.Accept(context.Background())
			if err != nil {
				return
			}
			go p.serveQUIC(conn)
		}
	}()
	return nil
}

func (p *port) serveQUIC(conn *quic.Conn) {
	e := p.edge
	c := &Conn{edge: e, Addr: p.addr, QUIC: true, carrier: &quicCarrier{e, conn}}
	defer conn.CloseWithError(0, "") //nolint:errcheck // gone either way
	if !e.admit(c) {
		return
	}
	defer e.forget(c)
	if !conn.ConnectionState().SupportsDatagrams.Remote {
		e.violate("quic: datagrams were not advertised")
	}
	first, err := conn.AcceptStream(conn.Context())
	if err != nil {
		return
	}
	_ = serveControl(c, first)
	e.retire(c)
	<-conn.Context().Done()
}

func (q *quicCarrier) drop() { _ = q.conn.CloseWithError(0x11, "dropped") }

// send implements carrier.
func (q *quicCarrier) send(r *http.Request, kind requestKind) (*http.Response, error) {
	st, err := q.conn.OpenStreamSync(r.Context())
	if err != nil {
		return nil, fmt.Errorf("fake edge: open stream: %w", err)
	}
	body := &quicBody{st: st}
	body.stop = context.AfterFunc(r.Context(), func() { st.CancelRead(0); st.CancelWrite(0) })
	if _, err := st.Write(wire.EncodeStreamRequest(streamRequest(r, kind))); err != nil {
		return nil, fmt.Errorf("fake edge: %w", err)
	}
	go func() {
		if r.Body != nil {
			_, _ = io.Copy(st, r.Body)
		}
		_ = st.Close()
	}()
	sr, err := wire.ReadStreamResponse(st)
	if err != nil {
		if errors.Is(err, wire.ErrMalformed) {
			q.edge.violate("stream response: %v", err)
		}
		return nil, fmt.Errorf("fake edge: %w", err)
	}
	resp := &http.Response{Header: http.Header{}, Body: body, Request: r, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, ContentLength: -1}
	if err = fill(resp, sr); err == nil {
		err = checkUpgrade(r, resp)
	}
	if err != nil {
		q.edge.violate("stream response: %v", err)
		return nil, fmt.Errorf("fake edge: stream response: %w", err)
	}
	return resp, nil
}

// streamRequest describes a request the way it goes over QUIC.
func streamRequest(r *http.Request, kind requestKind) wire.StreamRequest {
	host := r.Host
	if host == "" {
		host = r.URL.Host
	}
	out := wire.StreamRequest{Dest: "https://" + host + r.URL.RequestURI()}
	out.Meta = []wire.Pair{{Key: "HttpMethod", Value: r.Method}, {Key: "HttpHost", Value: host}}
	switch kind {
	case kindWebSocket:
		out.Kind = wire.StreamWebSocket
	case kindTCP:
		out.Kind, out.Dest = wire.StreamTCP, "10.0.0.1:22"
	case kindHTTP:
		if r.ContentLength > 0 {
			r.Header.Set("Content-Length", strconv.FormatInt(r.ContentLength, 10))
		} else if r.Body != nil && r.Body != http.NoBody {
			r.Header.Set("Transfer-Encoding", "chunked")
		}
	}
	for name, values := range r.Header {
		for _, v := range values {
			out.Meta = append(out.Meta, wire.Pair{Key: "HttpHeader:" + name, Value: v})
		}
	}
	return out
}

// fill turns a stream response into an HTTP one.
func fill(resp *http.Response, sr wire.StreamResponse) (err error) {
	for _, p := range sr.Meta {
		if p.Key == "HttpStatus" {
			if resp.StatusCode, err = strconv.Atoi(p.Value); err != nil {
				return fmt.Errorf("status %q", p.Value)
			}
		} else if name, ok := strings.CutPrefix(p.Key, "HttpHeader:"); ok {
			resp.Header.Add(name, p.Value)
		} else {
			return fmt.Errorf("metadata %q", p.Key)
		}
	}
	if sr.Err != "" {
		resp.Header.Set(SourceHeader, "cloudflared")
	}
	if resp.StatusCode == 0 || (sr.Err != "" && resp.StatusCode != http.StatusBadGateway) {
		return fmt.Errorf("status %d with error %q", resp.StatusCode, sr.Err)
	}
	return nil
}

// push implements carrier: a stream of its own, on which the edge is the RPC client.
func (q *quicCarrier) push(ctx context.Context, version int32, config []byte) (int32, error) {
	st, err := q.conn.OpenStreamSync(ctx)
	if err != nil {
		return 0, fmt.Errorf("fake edge: push: %w", err)
	}
	defer st.Close() //nolint:errcheck // the answer was read
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(5 * time.Second)
	}
	_ = st.SetDeadline(deadline)
	call := wire.Call{Question: 1, Interface: wire.Configurator, Method: wire.MethodUpdate, Target: wire.Target{Promised: true}}
	out := append(wire.SignatureRPC[:len(wire.SignatureRPC):len(wire.SignatureRPC)], wire.Bootstrap(0)...)
	out = append(out, wire.EncodeCall(call, &wire.Update{Version: version, Config: config})...)
	if _, err := st.Write(out); err != nil {
		return 0, fmt.Errorf("fake edge: push: %w", err)
	}
	for {
		m, err := wire.Read(st)
		if err != nil {
			return 0, fmt.Errorf("fake edge: push: %w", err)
		}
		if m.Kind != wire.KindReturn {
			continue
		}
		if m.Exception != nil {
			return 0, m.Exception
		}
		if m.ID == 0 && m.Capability == nil {
			q.edge.violate("bootstrap on an RPC stream returned no capability")
		}
		if m.ID != 1 {
			continue
		}
		var a wire.Applied
		if err := m.Decode(&a); err != nil {
			return 0, err
		}
		if a.Err != "" {
			return 0, errors.New(a.Err)
		}
		return a.Version, nil
	}
}

// quicBody is the handler's half of a stream.
type quicBody struct {
	st   *quic.Stream
	once sync.Once
	stop func() bool
}

// Read implements io.Reader.
func (b *quicBody) Read(p []byte) (int, error) { return b.st.Read(p) }

// Close implements io.Closer: nobody reads on, and nothing more is sent.
func (b *quicBody) Close() error {
	b.once.Do(func() {
		b.stop()
		b.st.CancelRead(0)
		b.st.CancelWrite(0)
	})
	return nil
}
