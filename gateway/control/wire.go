package control

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/berth-gpu/berth/container"
	"github.com/berth-gpu/berth/gateway"
	"github.com/berth-gpu/berth/gateway/link"
)

// SocketName is the socket's name in the state directory.
const SocketName = "control.sock"

// request is what any verb may need.
type request struct {
	Ref   string                `json:"ref,omitempty"`
	By    time.Duration         `json:"by,omitempty"`
	N     int                   `json:"n,omitempty"`
	Share *gateway.ShareRequest `json:"share,omitempty"`

	Overview gateway.OverviewOptions `json:"overview,omitzero"`
	Watch    *gateway.WatchRequest   `json:"watch,omitempty"`
}

// answer is one line of an answer: any number with Progress or Picture, then one with Result or
// Error.
type answer struct {
	Picture  json.RawMessage `json:"picture,omitempty"`
	Progress string          `json:"progress,omitempty"`
	Result   json.RawMessage `json:"result,omitempty"`
	Error    *Error          `json:"error,omitempty"`
}

// Error is what went wrong in the gateway. errors.Is finds the class it had there.
type Error struct {
	Text  string `json:"text"`
	Class string `json:"class,omitempty"`
}

// Error is the text that the gateway gave.
func (e *Error) Error() string { return e.Text }

// Unwrap returns the class, or nil.
func (e *Error) Unwrap() error {
	for _, c := range classes {
		if c.name == e.Class {
			return c.err
		}
	}
	return nil
}

// classes are the errors that callers tell apart. The first that matches names the error.
var classes = []struct {
	name string
	err  error
}{
	{"unknown-link", link.ErrUnknown},
	{"ambiguous-link", link.ErrAmbiguous},
	{"link-expired", link.ErrExpired},
	{"link-ended", link.ErrEnded},
	{"too-long", link.ErrTooLong},
	{"not-written", link.ErrDurable},
	{"no-terminal", gateway.ErrNoTerminal},
	{"docker-down", container.ErrUnavailable},
	{"no-image", container.ErrNoImage},
	{"disk-full", container.ErrNoSpace},
	{"no-subnet", container.ErrNoSubnet},
	{"name-taken", container.ErrConflict},
	{"not-possible", container.ErrInvalid},
	{"setup-failed", container.ErrSetup},
}

func errorOf(err error) *Error {
	e := &Error{Text: err.Error()}
	for _, c := range classes {
		if errors.Is(err, c.err) {
			e.Class = c.name
			break
		}
	}
	return e
}
