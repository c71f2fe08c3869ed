package tunneltest

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"time"
)

// Unready makes the public side answer 530 to the next n requests, as it does in the first
// minute of a quick tunnel.
func (e *Edge) Unready(n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.unready = n
}

// Public starts the HTTPS server that guests of the tunnel come to, under any name of
// *.example.test and *.trycloudflare.com. Its address is Listener.Addr; close it.
func (e *Edge) Public() *httptest.Server {
	s := httptest.NewUnstartedServer(e)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{e.ca.leaf}, MinVersion: tls.VersionTLS12}
	s.StartTLS()
	return s
}

// ServeHTTP is the public side: it passes a guest's request to a connector.
func (e *Edge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if e.notReady() {
		http.Error(w, "error code: 1033", 530)
		return
	}
	if isWebSocket(r) {
		e.serveWebSocket(w, r)
		return
	}
	out := r.Clone(r.Context())
	if out.ContentLength == 0 {
		out.Body = http.NoBody
	}
	resp, err := e.Do(out)
	if err != nil {
		badGateway(w, err)
		return
	}
	defer resp.Body.Close() //nolint:errcheck // read to its end or cut
	copyAnswer(w, resp)
}

func (e *Edge) notReady() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.unready > 0 {
		e.unready--
		return true
	}
	return false
}

func badGateway(w http.ResponseWriter, err error) {
	if errors.Is(err, ErrNoConnection) {
		http.Error(w, "error code: 1033", 530)
		return
	}
	http.Error(w, "error code: 502", http.StatusBadGateway)
}

func copyAnswer(w http.ResponseWriter, resp *http.Response) {
	for k, v := range resp.Header {
		w.Header()[k] = v
	}
	w.WriteHeader(resp.StatusCode)
	buf := make([]byte, 64<<10)
	for {
		n, err := resp.Body.Read(buf)
		if _, werr := w.Write(buf[:n]); werr != nil {
			return
		}
		_ = http.NewResponseController(w).Flush()
		if err != nil {
			return
		}
	}
}

// serveWebSocket passes a WebSocket through. When the guest goes, the request's body ends, and a
// second later the stream is reset.
func (e *Edge) serveWebSocket(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	defer cancel()
	out := r.Clone(ctx)
	body, feed := io.Pipe()
	defer feed.Close() //nolint:errcheck // never fails
	out.Body = body
	resp, err := e.Do(out)
	if err != nil {
		badGateway(w, err)
		return
	}
	defer resp.Body.Close() //nolint:errcheck // cut on purpose
	if resp.StatusCode != http.StatusSwitchingProtocols {
		_ = feed.Close()
		copyAnswer(w, resp)
		return
	}
	guest, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer guest.Close() //nolint:errcheck // gone either way
	if err := writeUpgrade(guest, resp.Header); err != nil {
		return
	}
	go func() {
		_, _ = io.Copy(feed, buffered)
		_ = feed.Close()
		timer := time.NewTimer(time.Second)
		defer timer.Stop()
		select {
		case <-timer.C:
			cancel()
		case <-ctx.Done():
		}
	}()
	_, _ = io.Copy(guest, resp.Body)
}

func writeUpgrade(guest net.Conn, h http.Header) error {
	if _, err := fmt.Fprint(guest, "HTTP/1.1 101 Switching Protocols\r\n"); err != nil {
		return err
	}
	if err := h.Write(guest); err != nil {
		return err
	}
	_, err := fmt.Fprint(guest, "\r\n")
	return err
}
