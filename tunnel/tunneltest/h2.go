package tunneltest

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// Headers of the HTTP/2 transport.
const (
	headerMark      = "Cf-Cloudflared-Proxy-Connection-Upgrade"
	headerTCPSource = "Cf-Cloudflared-Proxy-Src"
	headerPacked    = "Cf-Cloudflared-Response-Headers"
	headerMeta      = "Cf-Cloudflared-Response-Meta"

	markControl   = "control-stream"
	markWebSocket = "websocket"
	markConfig    = "update-configuration"
)

// SourceHeader is set on answers that did not come from the connector's handler: "cloudflared"
// marks the connector's own failures.
const SourceHeader = "X-Fake-Edge-Source"

// h2Carrier is an HTTP/2 connection. The edge is the client on it.
type h2Carrier struct {
	edge *Edge
	raw  *faulty
	rt   *http.Transport
}

// hidden keeps the type of a TLS connection from net/http, which would look at its protocols.
type hidden struct{ net.Conn }

// serveH2 runs one connection until it ends.
func (p *port) serveH2(raw *faulty) {
	e := p.edge
	h := &h2Carrier{edge: e, raw: raw}
	c := &Conn{edge: e, Addr: p.addr, carrier: h}
	defer raw.Close() //nolint:errcheck // gone either way
	if !e.admit(c) {
		return
	}
	defer e.forget(c)
	tc := tls.Server(raw, e.tlsConfig(nameH2, ""))
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := tc.HandshakeContext(ctx); err != nil {
		return
	}
	h.rt = singleTransport(hidden{tc})
	if !e.opts.NoControl {
		go h.control(c)
	}
	<-raw.ended
}

// singleTransport speaks HTTP/2 on one given connection and never dials.
func singleTransport(conn net.Conn) *http.Transport {
	var only http.Protocols
	only.SetUnencryptedHTTP2(true)
	once := make(chan net.Conn, 1)
	once <- conn
	return &http.Transport{
		Protocols: &only, DisableCompression: true,
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			select {
			case c := <-once:
				return c, nil
			default:
				return nil, ErrNoConnection
			}
		},
	}
}

func (h *h2Carrier) drop() { _ = h.raw.Close() }

// control opens the control stream and serves registration on it.
func (h *h2Carrier) control(c *Conn) {
	down, up := io.Pipe()
	defer up.Close() //nolint:errcheck // never fails
	r, _ := http.NewRequest(http.MethodGet, "http://edge.invalid/", down)
	r.Header.Set(headerMark, markControl)
	resp, err := h.rt.RoundTrip(r)
	if err != nil {
		return
	}
	defer resp.Body.Close() //nolint:errcheck // read to its end or cut
	if resp.StatusCode != http.StatusOK || resp.Header.Get(headerPacked) != "" {
		h.edge.violate("control stream: status %d, packed headers %q", resp.StatusCode, resp.Header.Get(headerPacked))
		h.drop()
		return
	}
	_ = serveControl(c, struct {
		io.Reader
		io.Writer
	}{resp.Body, up})
	h.edge.retire(c)
}

func (h *h2Carrier) secondControl(ctx context.Context) (int, error) {
	r, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://edge.invalid/", http.NoBody)
	r.Header.Set(headerMark, markControl)
	resp, err := h.rt.RoundTrip(r)
	if err != nil {
		return 0, fmt.Errorf("fake edge: second control stream: %w", err)
	}
	return resp.StatusCode, resp.Body.Close()
}

// push implements carrier.
func (h *h2Carrier) push(ctx context.Context, version int32, config []byte) (int32, error) {
	body, err := pushBody(version, config)
	if err != nil {
		return 0, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPut, "http://edge.invalid/", bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	r.Header.Set(headerMark, markConfig)
	resp, err := h.rt.RoundTrip(r)
	if err != nil {
		return 0, fmt.Errorf("fake edge: push: %w", err)
	}
	defer resp.Body.Close() //nolint:errcheck // small and read
	if resp.StatusCode != http.StatusOK || resp.Header.Get(headerMeta) != "" || resp.Header.Get(headerPacked) != "" {
		h.edge.violate("configuration answer: status %d, headers %v", resp.StatusCode, resp.Header)
	}
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil {
		return 0, err
	}
	return pushAnswer(answer)
}

// send implements carrier.
func (h *h2Carrier) send(r *http.Request, kind requestKind) (*http.Response, error) {
	host := r.Host
	if host == "" {
		host = r.URL.Host
	}
	r.Host, r.URL.Scheme, r.URL.Host = host, "http", "edge.invalid" // one key for the pool, the real authority on the wire
	r.RequestURI = ""
	switch kind {
	case kindWebSocket:
		r.Header.Set(headerMark, markWebSocket)
		r.ContentLength = -1
	case kindTCP:
		r.Header.Set(headerTCPSource, "10.0.0.1:22")
	case kindHTTP:
	}
	resp, err := h.rt.RoundTrip(r)
	if err != nil {
		return nil, fmt.Errorf("fake edge: %w", err)
	}
	if err := h.unpack(r, resp, kind); err != nil {
		h.edge.violate("answer to %s %s: %v", r.Method, r.URL.Path, err)
		_ = resp.Body.Close()
		return nil, fmt.Errorf("fake edge: answer: %w", err)
	}
	return resp, nil
}

// unpack turns an answer on the wire into the handler's.
func (h *h2Carrier) unpack(r *http.Request, resp *http.Response, kind requestKind) error {
	packed, meta := resp.Header.Values(headerPacked), resp.Header.Get(headerMeta)
	switch meta {
	case `{"src":"origin"}`:
	case `{"src":"cloudflared"}`:
		if resp.StatusCode != http.StatusBadGateway || len(packed) > 0 {
			return fmt.Errorf("own failure with status %d and packed headers %q", resp.StatusCode, packed)
		}
		resp.Header = http.Header{SourceHeader: {"cloudflared"}}
		return nil
	default:
		return fmt.Errorf("meta %q", meta)
	}
	if len(packed) != 1 {
		return fmt.Errorf("%d packed headers", len(packed))
	}
	inner, err := unpackHeaders(packed[0])
	if err != nil {
		return err
	}
	if l := resp.Header.Get("Content-Length"); l != inner.Get("Content-Length") {
		return fmt.Errorf("length %q on the wire, %q in the packed list", l, inner.Get("Content-Length"))
	}
	resp.Header = inner
	if kind == kindWebSocket && resp.StatusCode == http.StatusOK {
		resp.StatusCode, resp.Status = http.StatusSwitchingProtocols, "101 Switching Protocols"
	}
	return checkUpgrade(r, resp)
}

// checkUpgrade checks a 101 and its headers, on either transport.
func checkUpgrade(r *http.Request, resp *http.Response) error {
	if resp.StatusCode != http.StatusSwitchingProtocols {
		return nil
	}
	if got, want := resp.Header.Get("Sec-Websocket-Accept"), acceptKey(r.Header.Get("Sec-Websocket-Key")); got != want {
		return fmt.Errorf("accept key %q, want %q", got, want)
	}
	if !strings.EqualFold(resp.Header.Get("Upgrade"), "websocket") || !strings.EqualFold(resp.Header.Get("Connection"), "upgrade") {
		return errors.New("a 101 without its upgrade headers")
	}
	return nil
}
