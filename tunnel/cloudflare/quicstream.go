package cloudflare

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/berth-gpu/berth/tunnel/internal/wire"
)

// Names in the metadata of streams.
const (
	metaMethod = "HttpMethod"
	metaHost   = "HttpHost"
	metaStatus = "HttpStatus"
	metaHeader = "HttpHeader:"
)

// serveStream serves one request over QUIC.
func (c *edgeConn) serveStream(s *quic.Stream) error {
	in, err := wire.ReadStreamRequest(s)
	if err != nil {
		return err
	}
	_ = s.SetReadDeadline(time.Time{})
	on := &quicStream{Stream: s}
	r, err := streamRequest(in, on)
	if err != nil {
		return on.fail(err)
	}
	c.streams.serve(c.t.handler, on, r.WithContext(s.Context()))
	return on.failed
}

// streamRequest makes a request of what opened a stream.
func streamRequest(in wire.StreamRequest, body *quicStream) (*http.Request, error) {
	if in.Kind != wire.StreamHTTP && in.Kind != wire.StreamWebSocket {
		return nil, errors.New("only requests are served here")
	}
	to, err := url.Parse(in.Dest)
	if err != nil {
		return nil, errors.New("unreadable address")
	}
	r := &http.Request{
		Method: http.MethodGet, URL: to, Host: to.Host, RequestURI: to.RequestURI(), Header: make(http.Header),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Body: http.NoBody,
	}
	for _, p := range in.Meta {
		switch name, isHeader := strings.CutPrefix(p.Key, metaHeader); {
		case isHeader:
			r.Header.Add(name, p.Value)
		case p.Key == metaMethod:
			r.Method = p.Value
		case p.Key == metaHost:
			r.Host = p.Value
		}
	}
	length, err := strconv.ParseInt(r.Header.Get("Content-Length"), 10, 64)
	switch {
	case in.Kind == wire.StreamWebSocket:
		restoreUpgrade(r)
	case err == nil && length > 0:
		r.ContentLength, r.Body = length, io.NopCloser(io.LimitReader(body, length))
	case strings.Contains(strings.ToLower(r.Header.Get("Transfer-Encoding")), "chunked"):
		r.ContentLength, r.Body = -1, io.NopCloser(body)
	}
	return r, nil
}

// quicStream is a request on the QUIC transport. Reads, writes and deadlines are the stream's.
type quicStream struct {
	*quic.Stream
	failed error
}

// head sends the handler's headers. 101 stays 101 here.
func (s *quicStream) head(status int, h http.Header) error {
	out := wire.StreamResponse{Meta: []wire.Pair{{Key: metaStatus, Value: strconv.Itoa(status)}}}
	for name, values := range h {
		if edgesOwn(name) {
			continue
		}
		for _, v := range values {
			out.Meta = append(out.Meta, wire.Pair{Key: metaHeader + name, Value: v})
		}
	}
	_, err := s.Write(wire.EncodeStreamResponse(out))
	s.failed = err
	return err
}

// fail answers that the connector failed, not what it serves.
func (s *quicStream) fail(cause error) error {
	_, err := s.Write(wire.EncodeStreamResponse(wire.StreamResponse{
		Err: cause.Error(), Meta: []wire.Pair{{Key: metaStatus, Value: strconv.Itoa(http.StatusBadGateway)}},
	}))
	if err != nil {
		return fmt.Errorf("%w, and the edge was not told: %w", cause, err)
	}
	return nil
}
