package gateway

import (
	"errors"
	"sync"

	"charm.land/ssh"
	gossh "golang.org/x/crypto/ssh"

	"github.com/berth-gpu/berth/gateway/link"
)

// entry is one connection on its way in: a token, as the user name, and then a proof.
type entry struct {
	s    *Server
	conn *doorConn
	ctx  ssh.Context

	mu   sync.Mutex
	told bool  // a refused guest reads one reason, not one a key
	over error // every further try on this connection is refused with this
}

type sessionKey struct{}

// banner tells at the first request what no key could change: an unknown or ended link. A
// client that has no key to offer would otherwise be refused without a word.
func (e *entry) banner(meta gossh.ConnMetadata) string {
	err := e.check(meta, link.Guest{})
	var ended *link.EndedError
	switch {
	case errors.Is(err, link.ErrUnknown), errors.Is(err, link.ErrExpired), errors.As(err, &ended), errors.Is(err, errGuessing):
		return e.reason(err)
	}
	return ""
}

// offered answers whether this key could be used. It decides nothing: a key that is merely
// offered proves nothing (see proved).
func (e *entry) offered(meta gossh.ConnMetadata, key gossh.PublicKey) (*gossh.Permissions, error) {
	if err := e.check(meta, guestOf(key)); refused(err) {
		return nil, e.refuse(err)
	}
	return &gossh.Permissions{}, nil
}

// proved lets the guest in: x/crypto has verified a signature by key over this connection.
func (e *entry) proved(meta gossh.ConnMetadata, key gossh.PublicKey, _ *gossh.Permissions, _ string) (*gossh.Permissions, error) {
	return e.enter(meta, guestOf(key))
}

// keyless lets in a guest who has no usable key. Zero prompts: OpenSSH answers by itself, but it
// does answer, so that a dropped connection claims nothing.
func (e *entry) keyless(meta gossh.ConnMetadata, ask gossh.KeyboardInteractiveChallenge) (*gossh.Permissions, error) {
	if err := e.check(meta, keylessGuest); refused(err) {
		return nil, e.refuse(err)
	}
	if _, err := ask("", "", nil, nil); err != nil {
		return nil, err
	}
	return e.enter(meta, keylessGuest)
}

// refused reports whether a login need not go on. One that has to wait for the host does.
func refused(err error) bool { return err != nil && !errors.Is(err, link.ErrWaiting) }

// keylessGuest is a guest with nothing but the token.
var keylessGuest = link.Guest{Fingerprint: link.NoKey}

// guestOf identifies a guest by their key. Of a certificate it is the key inside: that is
// what signs, and it outlives the certificate.
func guestOf(key gossh.PublicKey) link.Guest {
	if cert, ok := key.(*gossh.Certificate); ok {
		key = cert.Key
	}
	return link.Guest{Key: key.Marshal(), Fingerprint: gossh.FingerprintSHA256(key)}
}

// check says what would become of g with this token, and changes nothing.
func (e *entry) check(meta gossh.ConnMetadata, g link.Guest) error {
	e.mu.Lock()
	over := e.over
	e.mu.Unlock()
	if over != nil {
		return over
	}
	if err := e.s.guard.allowed(e.conn); err != nil {
		return err
	}
	token, err := link.Parse(meta.User())
	if err != nil {
		e.s.guard.guessed(e.conn, meta.User())
		return link.ErrUnknown
	}
	err = e.s.Book.Check(token.Hash(), g)
	if errors.Is(err, link.ErrUnknown) {
		e.s.guard.guessed(e.conn, meta.User())
	}
	return err
}

// enter claims the link, or finds it claimed by this guest, and takes a place in it.
func (e *entry) enter(meta gossh.ConnMetadata, g link.Guest) (*gossh.Permissions, error) {
	token, err := link.Parse(meta.User())
	if err != nil {
		return nil, e.refuse(link.ErrUnknown)
	}
	l, err := e.claim(token, g)
	if err != nil {
		return nil, e.refuse(err)
	}
	sess, err := e.s.open(l, openOptions{conn: e.conn, ctx: e.ctx, guest: g, grant: token.Hash(), client: string(meta.ClientVersion())})
	if err != nil {
		return nil, e.refuse(err)
	}
	e.s.guard.leave(e.conn)
	return &gossh.Permissions{ExtraData: map[any]any{sessionKey{}: sess}}, nil
}

// claim binds the token to g. Where the host wants to confirm the first use, it waits a while
// for them; a guest who gave up by then has lost nothing, approval binds their key.
func (e *entry) claim(token link.Token, g link.Guest) (link.Link, error) {
	l, bound, err := e.s.Book.Claim(token.Hash(), g)
	if errors.Is(err, link.ErrWaiting) {
		l, bound, err = e.awaitApproval(token.Hash(), g)
	}
	if err != nil {
		return link.Link{}, err
	}
	if bound {
		e.claimed(l, token.Hash(), g)
	}
	return l, nil
}

// tell sends a line before authentication is over.
func (e *entry) tell(line string) {
	if c, ok := e.ctx.Value(preAuthKey{}).(gossh.ServerPreAuthConn); ok {
		_ = c.SendAuthBanner(line)
	}
}

type preAuthKey struct{}

// refuse turns a cause into what x/crypto sends: a reason once, then a plain failure.
func (e *entry) refuse(cause error) error {
	e.s.Log.Debug("refused", "address", e.conn.RemoteAddr(), "cause", cause)
	reason := e.reason(cause)
	if reason == "" {
		return errRefused
	}
	return &gossh.BannerError{Err: errRefused, Message: reason}
}

var errRefused = errors.New("refused")

// reason returns the line for cause, the first time only.
func (e *entry) reason(cause error) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	text := reason(cause)
	if e.told || text == "" {
		return ""
	}
	e.told = true
	return "berth: " + text + "\n"
}
