package tunneltest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
)

// quickService makes quick tunnels that the edge then knows.
type quickService struct {
	edge *Edge
	mu   sync.Mutex
	made []Tunnel
	asks int
	next []http.Handler // answers to the next requests, before it works again
}

// Quick starts the service that makes quick tunnels. Close it.
func (e *Edge) Quick() *httptest.Server { return httptest.NewServer(e.quick) }

// QuickTunnels lists the quick tunnels that were made.
func (e *Edge) QuickTunnels() []Tunnel {
	e.quick.mu.Lock()
	defer e.quick.mu.Unlock()
	return append([]Tunnel(nil), e.quick.made...)
}

// QuickRequests counts the requests to the quick service.
func (e *Edge) QuickRequests() int {
	e.quick.mu.Lock()
	defer e.quick.mu.Unlock()
	return e.quick.asks
}

// QuickFaults makes the quick service answer its next requests with these instead.
func (e *Edge) QuickFaults(faults ...http.Handler) {
	e.quick.mu.Lock()
	defer e.quick.mu.Unlock()
	e.quick.next = append(e.quick.next, faults...)
}

// QuickStatus answers with a status and a body: 429, an HTML page, an outage.
func QuickStatus(status int, contentType, body string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	})
}

// QuickCut closes the connection without an answer.
func QuickCut() http.Handler {
	return http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
}

// ServeHTTP implements http.Handler.
func (q *quickService) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q.inspect(r)
	q.mu.Lock()
	q.asks++
	n := len(q.made) + 1
	if len(q.next) > 0 {
		h := q.next[0]
		q.next = q.next[1:]
		q.mu.Unlock()
		h.ServeHTTP(w, r)
		return
	}
	t := q.edge.AddTunnel(fmt.Sprintf("four-quick-words-%d.trycloudflare.com", n))
	q.made = append(q.made, t)
	q.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{
		"success": true, "errors": []any{},
		"result": map[string]any{"id": t.UUID(), "name": "qt-" + t.UUID(), "hostname": t.Hostname, "account_tag": t.Account, "secret": t.Secret},
	})
}

// inspect reports a request that the service would not take.
func (q *quickService) inspect(r *http.Request) {
	body, _ := io.ReadAll(io.LimitReader(r.Body, 1<<10))
	if r.Method != http.MethodPost || r.URL.Path != "/tunnel" || len(body) > 0 {
		q.edge.violate("quick service: %s %s with %d bytes", r.Method, r.URL.Path, len(body))
	}
	if r.Header.Get("Content-Type") != "application/json" {
		q.edge.violate("quick service: content type %q", r.Header.Get("Content-Type"))
	}
	if name, version, ok := strings.Cut(r.UserAgent(), "/"); !ok || name == "" || version == "" {
		q.edge.violate("quick service: user agent %q", r.UserAgent())
	}
}
