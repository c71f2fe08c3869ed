package cloudflare

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"regexp"
	"sync"
	"time"

	"github.com/berth-gpu/berth/tunnel"
)

// Door is Cloudflare's tunnel as a way in. Its fields may be set until Listen; after that only
// its methods are used.
type Door struct {
	// Credentials are those of a named tunnel; if nil, a quick tunnel is made, which needs no
	// account and has another name after each start.
	Credentials *Credentials
	Hostname    string          // of a named tunnel, as the dashboard routes it
	Protocol    Protocol        // if empty, Auto
	Dir         string          // the state directory, for what is fetched once
	RootsFile   string          // the certificates to believe instead of the system's and Cloudflare's
	HostKeys    func() []string // the gateway's public keys, as "type base64"; if nil, none
	Resume      func(net.Conn)  // takes resumable streams; if nil, there are none
	Version     string          // of the program
	Log         *slog.Logger    // if nil, slog.Default

	// Program is the official connector, to be run instead of ours; if empty, ours.
	Program string

	// Edge names the edge's addresses instead of having them looked up, Service the one of quick
	// tunnels, and Public where the public hostname is to be found: for tests and for networks
	// that need it.
	Edge    []string
	Service string
	Public  string
	// Dial connects to the edge over TCP; if nil, a net.Dialer does.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// Grace is how long requests may run on after Close; if zero, 10 s.
	Grace time.Duration

	ln     *listener
	site   *site
	cancel context.CancelFunc
	done   chan struct{}

	mu    sync.Mutex
	state Status
	conns map[uint8]bool // that are registered
}

// Status is how the door stands.
type Status struct {
	Hostname    string // the public one, once it is known
	Connections int    // to the edge
	Up          bool   // guests get in
	Err         error  // why not, as far as it is known
}

// defaultGrace is for requests that run when the door is closed. SSH sessions have been told and
// closed by then.
const defaultGrace = 10 * time.Second

// Name is cloudflare.
func (d *Door) Name() string { return "cloudflare" }

// Listen opens the door in the background: whatever fails is tried again, and told by Status.
func (d *Door) Listen(ctx context.Context) (net.Listener, error) {
	if d.Credentials != nil && !ValidHostname(d.Hostname) {
		return nil, fmt.Errorf("open cloudflare door: %q is no hostname, and a named tunnel needs its own", d.Hostname)
	}
	site, err := newSite()
	if err != nil {
		return nil, err
	}
	var id [8]byte
	_, _ = rand.Read(id[:]) // never fails
	d.ln, d.site, d.done, d.conns = newListener(), site, make(chan struct{}), make(map[uint8]bool)
	site.id, site.host, site.keys, site.accept, site.resume = hex.EncodeToString(id[:]), d.hostname, d.HostKeys, d.ln.put, d.Resume
	if site.keys == nil {
		site.keys = func() []string { return nil }
	}
	if d.Log == nil {
		d.Log = slog.Default()
	}
	ctx, d.cancel = context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		defer close(d.done)
		d.run(ctx)
	}()
	return d.ln, nil
}

// Close closes the door: no new guests, and the tunnel ends when its last request has, or after
// the grace.
func (d *Door) Close() error {
	if d.cancel == nil {
		return nil
	}
	_ = d.ln.Close()
	d.cancel()
	<-d.done
	return nil
}

// Status says how the door stands now.
func (d *Door) Status() Status {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.state
	s.Connections = len(d.conns)
	s.Up = s.Up && s.Connections > 0
	return s
}

// Lines are what a guest types who has cloudflared.
func (d *Door) Lines(token string) (tunnel.Lines, bool) {
	s := d.Status()
	if !s.Up {
		return tunnel.Lines{}, false
	}
	const proxy = " -o ProxyCommand='cloudflared access ssh --hostname %h' "
	at := token + "@" + s.Hostname
	return tunnel.Lines{Host: s.Hostname, Port: 22, SSH: "ssh" + proxy + at, SCP: "scp" + proxy + "FILE " + at + ":", SFTP: "sftp" + proxy + at}, true
}

func (d *Door) hostname() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.state.Hostname
}

// run keeps the tunnel until ctx ends.
func (d *Door) run(ctx context.Context) {
	for failures := 1; ctx.Err() == nil; failures++ {
		began := time.Now()
		err := d.tunnel(ctx)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > time.Hour {
			failures = 1
		}
		d.fail(err)
		pause(ctx, d.again(err, failures))
	}
}

// again is how long to wait after a tunnel failed: long where someone asked for it, or where
// only the host can help.
func (d *Door) again(err error, failures int) time.Duration {
	var limited *limitedError
	var final *finalError
	switch {
	case errors.As(err, &limited), errors.As(err, &final), d.Credentials != nil && errors.Is(err, ErrRefused):
		wait := 10 * time.Minute
		if limited != nil {
			wait = max(wait, limited.after)
		}
		return wait + backoff(5)
	default:
		return backoff(failures) + time.Second
	}
}

// fail notes why the door is closed, and says so unless it was said.
func (d *Door) fail(err error) {
	d.mu.Lock()
	known := d.state.Err != nil && err != nil && d.state.Err.Error() == err.Error()
	d.state.Up, d.state.Err = false, err
	d.mu.Unlock()
	level := slog.LevelWarn
	if known || err == nil {
		level = slog.LevelDebug
	}
	d.Log.Log(context.Background(), level, "door is down; it is tried again", "door", d.Name(), "cause", err)
}

// tunnel opens one tunnel and keeps it until it cannot be kept.
func (d *Door) tunnel(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if d.Program != "" {
		return d.supervise(ctx)
	}
	roots := &rootStore{file: d.RootsFile, dir: d.Dir, urls: rootURLs(), pins: rootPins(), http: http.DefaultClient}
	pool, err := roots.pool(ctx)
	if err != nil {
		return err
	}
	if d.RootsFile == "" && time.Now().After(rootsEnd().AddDate(0, -2, 0)) {
		d.Log.Warn("the edge's root certificates that this berth knows end soon; get a newer berth", "end", rootsEnd())
	}
	t := &connector{
		protocol: d.Protocol, roots: pool, version: registeredVersion(d.Version), handler: d.site, log: d.Log, grace: d.grace(), want: maxConnections,
		dial: d.Dial, changed: d.connChanged,
	}
	if t.dial == nil {
		t.dial = (&net.Dialer{}).DialContext
	}
	t.client = newClientID()
	hostname := d.Hostname
	if d.Credentials != nil {
		t.creds = *d.Credentials
	} else {
		q := &quickClient{url: d.Service, version: t.version, http: http.DefaultClient}
		if q.url == "" {
			q.url = quickService
		}
		if t.creds, hostname, err = q.open(ctx); err != nil {
			return err
		}
		t.want, t.renewable = 1, true
	}
	t.edges = d.findEdges(t.creds.endpoint)
	d.begin(hostname)
	t.prepare()
	d.Log.Debug("opening a tunnel", "hostname", hostname, "as", "cloudflared "+described)
	check := &publicCheck{door: d, hostname: hostname, first: t.first}
	if d.RootsFile != "" {
		check.roots = pool
	}
	go check.run(ctx)
	return t.run(ctx)
}

// begin notes that a tunnel is being opened.
func (d *Door) begin(hostname string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.state.Hostname, d.state.Up = hostname, false
	clear(d.conns)
}

func (d *Door) grace() time.Duration {
	if d.Grace != 0 {
		return d.Grace
	}
	return defaultGrace
}

func (d *Door) findEdges(region string) *edges {
	if len(d.Edge) > 0 {
		return fixedEdges(d.Edge)
	}
	return newEdges(discover(region, net.DefaultResolver, overTLS()))
}

// connChanged is told of every connection's fate.
func (d *Door) connChanged(index uint8, up bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if up {
		d.conns[index] = true
		if d.state.Up {
			d.state.Err = nil
		}
		return
	}
	delete(d.conns, index)
	if len(d.conns) == 0 && err != nil {
		d.state.Err = err
	}
}

// newClientID is a random UUID.
func newClientID() (id [16]byte) {
	_, _ = rand.Read(id[:]) // never fails
	id[6] = id[6]&0x0f | 0x40
	id[8] = id[8]&0x3f | 0x80
	return id
}

var notInVersion = regexp.MustCompile(`[^0-9A-Za-z.+-]+`)

// registeredVersion is the program's version in the form the edge takes.
func registeredVersion(v string) string {
	v = notInVersion.ReplaceAllString(v, "")
	if v == "" {
		v = "devel"
	}
	return "berth-" + v[:min(len(v), 50)]
}
