package cloudflare

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // the page is a file of its own
	"encoding/base64"
	"fmt"
	"html/template"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
)

//go:embed page.html
var pageText string

// headerGateway tells our own gateway from another that answers at the same name.
const headerGateway = "Berth-Gateway"

// maxSockets bounds the WebSockets that are open at once, whoever opened them.
const maxSockets = 4096

// site is what the public hostname serves. Nothing in it is secret, and nothing that a GET asks
// for changes anything.
type site struct {
	id      string          // of this run, at random
	host    func() string   // the public hostname
	keys    func() []string // the gateway's, as "type base64"
	accept  func(net.Conn) error
	resume  func(net.Conn) // takes a resumable stream; if nil, there are none
	page    *template.Template
	sockets atomic.Int64
}

// The paths that are served.
const (
	pathSSH        = "/"
	pathResume     = "/stream" // SSH on a stream that survives a cut, for our own client
	pathConfig     = "/ssh-config"
	pathKnownHosts = "/known-hosts"
)

func newSite() (*site, error) {
	page, err := template.New("page").Parse(pageText)
	if err != nil {
		return nil, fmt.Errorf("read the page: %w", err)
	}
	return &site{page: page, resume: nil}, nil
}

// ServeHTTP implements http.Handler.
func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set(headerGateway, s.id)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Robots-Tag", "noindex")
	switch {
	case r.Host == hostManagement:
		http.NotFound(w, r)
	case isWebSocket(r):
		s.socket(w, r)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		h.Set("Allow", "GET, HEAD")
		http.Error(w, "only GET and HEAD are served here", http.StatusMethodNotAllowed)
	default:
		s.file(w, r)
	}
}

// file serves the pages.
func (s *site) file(w http.ResponseWriter, r *http.Request) {
	var body bytes.Buffer
	kind := "text/plain; charset=utf-8"
	switch r.URL.Path {
	case pathSSH:
		kind = "text/html; charset=utf-8"
		w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
		w.Header().Set("Referrer-Policy", "no-referrer")
		if err := s.page.Execute(&body, s.facts()); err != nil {
			http.Error(w, "the page could not be made", http.StatusInternalServerError)
			return
		}
	case pathConfig:
		fmt.Fprintf(&body, sshConfig, s.host())
	case pathKnownHosts:
		for _, key := range s.keys() {
			fmt.Fprintln(&body, s.host(), key)
		}
	default:
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Content-Length", fmt.Sprint(body.Len()))
	if r.Method == http.MethodGet {
		_, _ = body.WriteTo(w)
	}
}

// sshConfig is what a guest appends to their own.
const sshConfig = `# Append this to ~/.ssh/config; then: ssh TOKEN@%[1]s
Host %[1]s
    ProxyCommand cloudflared access ssh --hostname %%h
    # with berth instead of cloudflared: ProxyCommand berth connect %%h
    ServerAliveInterval 30
`

// facts are what the page shows.
func (s *site) facts() any {
	var prints []string
	for _, key := range s.keys() {
		kind, blob, _ := strings.Cut(key, " ")
		raw, err := base64.StdEncoding.DecodeString(blob)
		if err != nil {
			continue
		}
		sum := sha256.Sum256(raw)
		prints = append(prints, kind+" SHA256:"+base64.RawStdEncoding.EncodeToString(sum[:]))
	}
	return struct {
		Host         string
		Fingerprints []string
	}{s.host(), prints}
}

// socket serves a WebSocket that carries SSH.
func (s *site) socket(w http.ResponseWriter, r *http.Request) {
	take := s.accept
	switch {
	case r.URL.Path == pathResume && s.resume != nil:
		take = func(c net.Conn) error { s.resume(c); return nil }
	case r.URL.Path != pathSSH:
		http.NotFound(w, r)
		return
	}
	if origin := r.Header.Get("Origin"); origin != "" && !sameHost(origin, r.Host) {
		http.Error(w, "a page of another site may not connect here", http.StatusForbidden)
		return
	}
	if s.sockets.Add(1) > maxSockets {
		s.sockets.Add(-1)
		w.Header().Set("Retry-After", "30")
		http.Error(w, "too many connections; try again later", http.StatusServiceUnavailable)
		return
	}
	c, err := acceptSocket(w, r)
	if err != nil {
		s.sockets.Add(-1)
		return
	}
	counted := &countedConn{Conn: c, left: func() { s.sockets.Add(-1) }}
	if take(counted) != nil {
		_ = counted.Close()
	}
}

// sameHost says whether a page's origin is the site itself.
func sameHost(origin, host string) bool {
	u, err := url.Parse(origin)
	return err == nil && strings.EqualFold(u.Host, host)
}

// countedConn tells when it is closed.
type countedConn struct {
	net.Conn
	left   func()
	closed atomic.Bool
}

// Close implements net.Conn.
func (c *countedConn) Close() error {
	err := c.Conn.Close()
	if c.closed.CompareAndSwap(false, true) {
		c.left()
	}
	return err
}
