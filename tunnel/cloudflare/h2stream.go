package cloudflare

import (
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// h2Stream is a request on the HTTP/2 transport. Nothing touches the response once its handler
// has returned: the server uses it again.
type h2Stream struct {
	w    http.ResponseWriter
	ctl  *http.ResponseController
	body io.Reader

	mu   sync.RWMutex // held for reading while the response is used
	over bool
}

func newH2Stream(w http.ResponseWriter, r *http.Request) *h2Stream {
	return &h2Stream{w: w, ctl: http.NewResponseController(w), body: r.Body}
}

// Read implements io.Reader.
func (s *h2Stream) Read(p []byte) (int, error) { return s.body.Read(p) }

// Write implements io.Writer. What was written leaves at once.
func (s *h2Stream) Write(p []byte) (n int, err error) {
	gone := s.use(func() {
		if n, err = s.w.Write(p); err == nil {
			err = s.ctl.Flush()
		}
	})
	if gone != nil {
		return 0, gone
	}
	return n, err
}

// use runs fn unless the handler has returned.
func (s *h2Stream) use(fn func()) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.over {
		return net.ErrClosed
	}
	fn()
	return nil
}

// finish is called before the handler returns. A write that still runs is broken off.
func (s *h2Stream) finish() {
	if !s.mu.TryLock() {
		_ = s.SetWriteDeadline(time.Unix(1, 0))
		s.mu.Lock()
	}
	s.over = true
	s.mu.Unlock()
}

// head sends the handler's headers packed into one, as the edge wants them. 101 is 200 here.
func (s *h2Stream) head(status int, h http.Header) error {
	packed := packHeaders(h)
	if len(packed) > maxPacked {
		ownFailure(s.w)
		return fmt.Errorf("answer: headers of %d bytes, the edge takes %d", len(packed), maxPacked)
	}
	out := s.w.Header()
	out.Set(headerPacked, packed)
	out.Set(headerMeta, metaOrigin)
	if length := h.Get("Content-Length"); length != "" {
		out.Set("Content-Length", length)
	}
	if status == http.StatusSwitchingProtocols {
		status = http.StatusOK
	}
	s.w.WriteHeader(status)
	return s.ctl.Flush()
}

// SetReadDeadline bounds reads.
func (s *h2Stream) SetReadDeadline(t time.Time) (err error) {
	gone := s.use(func() { err = s.ctl.SetReadDeadline(t) })
	if gone != nil {
		return gone
	}
	return err
}

// SetWriteDeadline bounds writes.
func (s *h2Stream) SetWriteDeadline(t time.Time) (err error) {
	gone := s.use(func() { err = s.ctl.SetWriteDeadline(t) })
	if gone != nil {
		return gone
	}
	return err
}

// ownFailure is an answer that says: the connector failed, not what it serves.
func ownFailure(w http.ResponseWriter) {
	w.Header().Set(headerMeta, metaOwn)
	w.WriteHeader(http.StatusBadGateway)
}

// packHeaders writes headers as one value: base64 without padding of name and value.
func packHeaders(h http.Header) string {
	var b strings.Builder
	for name, values := range h {
		if edgesOwn(name) {
			continue
		}
		for _, v := range values {
			if b.Len() > 0 {
				b.WriteByte(';')
			}
			b.WriteString(base64.RawStdEncoding.EncodeToString([]byte(name)))
			b.WriteByte(':')
			b.WriteString(base64.RawStdEncoding.EncodeToString([]byte(v)))
		}
	}
	return b.String()
}

// edgesOwn says whether a header's name is the edge's to set.
func edgesOwn(name string) bool {
	name = strings.ToLower(name)
	for _, prefix := range []string{":", "cf-int-", "cf-cloudflared-", "cf-proxy-"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}
