package wire

import (
	"fmt"
	"time"
)

// Registration is the parameters of register: who we are and which tunnel we serve.
// Account, Secret and Tunnel are credentials and never belong in a log.
type Registration struct {
	Account  string
	Secret   []byte
	Tunnel   []byte // 16 bytes
	Index    uint8
	Client   []byte // 16 bytes, the same on all connections of a process
	Features []string
	Version  string
	Arch     string
	LocalIP  []byte // 4 or 16 bytes, or none
	Replace  bool
	Attempts uint8 // failed tries before this one
}

func (r *Registration) encode(w *builder, at int) {
	data, ptr := w.structure(at, 1, 3)
	w.b[data] = r.Index
	_, creds := w.structure(ptr, 0, 2)
	w.text(creds, r.Account)
	w.data(creds+8, r.Secret)
	w.data(ptr+8, r.Tunnel)
	opts, optPtr := w.structure(ptr+16, 1, 2)
	if r.Replace {
		w.b[opts] = 1
	}
	w.b[opts+2] = r.Attempts
	_, client := w.structure(optPtr, 0, 4)
	w.data(client, r.Client)
	w.texts(client+8, r.Features)
	w.text(client+16, r.Version)
	w.text(client+24, r.Arch)
	w.data(optPtr+8, r.LocalIP)
}

func (r *Registration) decode(v view) error {
	rd := reading{}
	creds, opts := rd.sub(v, 0), rd.sub(v, 2)
	client := rd.sub(opts, 0)
	*r = Registration{
		Account: rd.text(creds, 0), Secret: rd.bytes(creds, 1), Tunnel: rd.bytes(v, 1), Index: v.u8(0),
		Client: rd.bytes(client, 0), Features: rd.texts(client, 1), Version: rd.text(client, 2), Arch: rd.text(client, 3),
		LocalIP: rd.bytes(opts, 1), Replace: opts.bit(0), Attempts: opts.u8(2),
	}
	return rd.err
}

// Outcome is the result of register. With a Cause the connection was refused.
type Outcome struct {
	Cause      string
	Retry      bool
	RetryAfter time.Duration

	Connection      []byte // 16 bytes
	Place           string // airport code of the edge
	RemotelyManaged bool
}

func (o *Outcome) encode(w *builder, at int) {
	_, results := w.structure(at, 0, 1)
	data, ptr := w.structure(results, 1, 1)
	if o.Cause != "" {
		refusal, text := w.structure(ptr, 2, 1)
		le.PutUint64(w.b[refusal:], uint64(o.RetryAfter))
		if o.Retry {
			w.b[refusal+8] = 1
		}
		w.text(text, o.Cause)
		return
	}
	le.PutUint16(w.b[data:], 1)
	accepted, more := w.structure(ptr, 1, 2)
	if o.RemotelyManaged {
		w.b[accepted] = 1
	}
	w.data(more, o.Connection)
	w.text(more+8, o.Place)
}

func (o *Outcome) decode(v view) error {
	rd := reading{}
	union := rd.sub(v, 0)
	body := rd.sub(union, 0)
	switch tag := union.u16(0); tag {
	case 0:
		*o = Outcome{Cause: rd.text(body, 0), RetryAfter: time.Duration(body.u64(0)), Retry: body.bit(64)}
		if o.Cause == "" {
			o.Cause = "no reason given"
		}
	case 1:
		*o = Outcome{Connection: rd.bytes(body, 0), Place: rd.text(body, 1), RemotelyManaged: body.bit(0)}
	default:
		return fmt.Errorf("%w: outcome variant %d", ErrMalformed, tag)
	}
	return rd.err
}

// LocalConfig is the parameters of localConfig: JSON for the dashboard.
type LocalConfig struct{ JSON []byte }

func (c *LocalConfig) encode(w *builder, at int) {
	_, ptr := w.structure(at, 0, 1)
	w.data(ptr, c.JSON)
}

func (c *LocalConfig) decode(v view) (err error) {
	c.JSON, err = v.bytes(0)
	return err
}

// Empty is a struct without fields.
type Empty struct{}

func (Empty) encode(w *builder, at int) { w.structure(at, 0, 0) }
func (Empty) decode(view) error         { return nil }

// Update is the parameters of a configuration push over QUIC.
type Update struct {
	Version int32
	Config  []byte // JSON
}

func (u *Update) encode(w *builder, at int) {
	data, ptr := w.structure(at, 1, 1)
	le.PutUint32(w.b[data:], uint32(u.Version))
	w.data(ptr, u.Config)
}

func (u *Update) decode(v view) (err error) {
	u.Version = int32(v.u32(0))
	u.Config, err = v.bytes(0)
	return err
}

// Applied is the result of a configuration push over QUIC: the version now in force.
type Applied struct {
	Version int32
	Err     string
}

func (a *Applied) encode(w *builder, at int) {
	_, results := w.structure(at, 0, 1)
	data, ptr := w.structure(results, 1, 1)
	le.PutUint32(w.b[data:], uint32(a.Version))
	w.text(ptr, a.Err)
}

func (a *Applied) decode(v view) error {
	rd := reading{}
	body := rd.sub(v, 0)
	*a = Applied{Version: int32(body.u32(0)), Err: rd.text(body, 0)}
	return rd.err
}

// reading reads fields and keeps the first error, so that a decoder stays a list of fields.
type reading struct{ err error }

func (r *reading) keep(err error) {
	if r.err == nil {
		r.err = err
	}
}

func (r *reading) sub(v view, i int) view {
	s, err := v.sub(i)
	r.keep(err)
	return s
}

func (r *reading) text(v view, i int) string {
	s, err := v.text(i)
	r.keep(err)
	return s
}

func (r *reading) bytes(v view, i int) []byte {
	b, err := v.bytes(i)
	r.keep(err)
	return b
}

func (r *reading) texts(v view, i int) []string {
	l, err := v.texts(i)
	r.keep(err)
	return l
}
