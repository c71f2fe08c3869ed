package gateway

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"charm.land/ssh"
	gossh "golang.org/x/crypto/ssh"

	"github.com/berth-gpu/berth/container"
	"github.com/berth-gpu/berth/gateway/link"
)

// keepaliveEvery is how often we ask a silent client for a sign of life, and
// keepaliveMissed how many may stay unanswered: an outage shorter than the product of
// both is survived. They do not count as the guest's activity.
const (
	keepaliveEvery  = 30 * time.Second
	keepaliveMissed = 4
)

// session is one SSH connection of a guest who is in.
type session struct {
	live   *live
	id     string
	conn   *doorConn
	guest  link.Guest
	grant  link.Hash
	client string
	since  time.Time

	mu       sync.Mutex
	channels map[*channel]string // what each is: shell, exec, sftp …
	ended    bool

	forwards forwards
}

type openOptions struct {
	conn   *doorConn
	ctx    ssh.Context
	guest  link.Guest
	grant  link.Hash
	client string
}

// open takes a place on link l for a connection that has just been authenticated.
func (s *Server) open(l link.Link, o openOptions) (*session, error) {
	v := s.live(l.ID)
	if v == nil {
		return nil, errShutdown
	}
	sess := &session{
		live: v, id: link.NewID(), conn: o.conn, guest: o.guest, grant: o.grant,
		client: strings.TrimPrefix(o.client, "SSH-2.0-"), since: s.Now(), channels: make(map[*channel]string),
		forwards: forwards{open: make(map[string]*container.Listener)},
	}
	if err := v.admit(o.ctx, sess, l.Terms.Sessions); err != nil {
		return nil, err
	}
	o.conn.onClose(func() {
		v.drop(sess)
		sess.forwards.close()
		s.note(Event{Event: "session.closed", Link: l.ID, Session: sess.id, Address: sess.address(), Key: o.guest.Fingerprint})
	})
	s.note(Event{Event: "session.opened", Link: l.ID, Session: sess.id, Address: sess.address(), Key: o.guest.Fingerprint, Detail: o.conn.door + " " + sess.client})
	go s.guarded("keepalive", func() { sess.keepAlive(o.ctx) })
	return sess, nil
}

// owner tells this guest's terminals from those of others who share the link: by their key, or
// by the token where they have none.
func (x *session) owner() string {
	if x.guest.Fingerprint == link.NoKey {
		return fmt.Sprintf("%x", x.grant[:8])
	}
	return x.guest.Fingerprint
}

func (x *session) address() string { return x.conn.RemoteAddr().String() }

// keepAlive keeps a silent connection open through whatever lies between, and ends one whose
// other side is gone.
func (x *session) keepAlive(ctx ssh.Context) {
	tick := time.NewTicker(keepaliveEvery)
	defer tick.Stop()
	answers := make(chan struct{}, 1)
	missed := 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-answers:
			missed = 0
			continue
		case <-tick.C:
		}
		if missed++; missed > keepaliveMissed {
			_ = x.conn.Close()
			return
		}
		if conn, ok := ctx.Value(ssh.ContextKeyConn).(*gossh.ServerConn); ok {
			go func() {
				if _, _, err := conn.SendRequest("keepalive@openssh.com", true, nil); err == nil {
					select {
					case answers <- struct{}{}:
					default:
					}
				}
			}()
		}
	}
}

// admits reports whether new channels may be opened: the link is checked again at each.
func (x *session) admits() bool {
	x.mu.Lock()
	ended := x.ended
	x.mu.Unlock()
	if ended {
		return false
	}
	l, ok := x.live.s.Book.Get(x.live.id)
	return ok && l.State == link.Claimed
}

func (x *session) track(c *channel, what string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.channels[c] = what
}

func (x *session) untrack(c *channel) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.channels, c)
}

func (x *session) all() []*channel {
	x.mu.Lock()
	defer x.mu.Unlock()
	all := make([]*channel, 0, len(x.channels))
	for c := range x.channels {
		all = append(all, c)
	}
	return all
}

// close tells every channel why and closes the connection.
func (x *session) close(why string) {
	x.mu.Lock()
	x.ended = true
	x.mu.Unlock()
	var told sync.WaitGroup
	for _, c := range x.all() {
		told.Go(func() { c.finish(why) })
	}
	waitFor(&told, farewellTimeout)
	_ = x.conn.Close()
}

// farewellTimeout bounds how long a client that reads nothing can hold up an end.
const farewellTimeout = 2 * time.Second

// waitFor waits for wg, but no longer than d.
func waitFor(wg *sync.WaitGroup, d time.Duration) {
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(d):
	}
}

func (x *session) view() SessionView {
	x.mu.Lock()
	defer x.mu.Unlock()
	v := SessionView{
		ID: x.id, Since: x.since, Address: x.address(), Door: x.conn.door, Key: x.guest.Fingerprint,
		Client: x.client, Channels: []string{}, BytesIn: x.conn.in.Load(), BytesOut: x.conn.out.Load(),
	}
	for _, what := range x.channels {
		v.Channels = append(v.Channels, what)
	}
	slices.Sort(v.Channels)
	return v
}

// environ is what a login tells a child about its connection, sshd(8).
func (x *session) environ() []string {
	host, port, err := net.SplitHostPort(x.address())
	if err != nil {
		return nil
	}
	local, localPort, err := net.SplitHostPort(x.conn.LocalAddr().String())
	if err != nil {
		local, localPort = cmp.Or(local, "-"), "0"
	}
	return []string{
		"SSH_CLIENT=" + host + " " + port + " " + localPort,
		"SSH_CONNECTION=" + host + " " + port + " " + local + " " + localPort,
	}
}
