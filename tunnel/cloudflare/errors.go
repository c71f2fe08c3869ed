package cloudflare

import (
	"crypto/x509"
	"errors"
	"fmt"
	"time"
)

// Classes of what keeps the door closed. What to do about each is told by who prints it.
var (
	// ErrDiscovery means that the edge's addresses could not be found.
	ErrDiscovery = errors.New("Cloudflare's edge cannot be found")
	// ErrUnreachable means that no address of the edge could be connected to.
	ErrUnreachable = errors.New("Cloudflare's edge cannot be reached")
	// ErrRoots means that the certificates which sign the edge's are not at hand.
	ErrRoots = errors.New("Cloudflare's root certificates are not at hand")
	// ErrUntrusted means that the edge's certificate is signed by nobody we know.
	ErrUntrusted = errors.New("the edge's certificate is not Cloudflare's")
	// ErrClock means that the edge's certificate is not valid at this machine's time.
	ErrClock = errors.New("the edge's certificate is not valid at this machine's time")
	// ErrRefused means that the edge does not know the tunnel or its secret.
	ErrRefused = errors.New("the tunnel was refused")
	// ErrBusy means that the service of quick tunnels wants fewer requests from this address.
	ErrBusy = errors.New("the quick tunnel service limits this address")
	// ErrQuick means that the service of quick tunnels is down, or answers with something else.
	ErrQuick = errors.New("the quick tunnel service does not work")
	// ErrElsewhere means that the public hostname does not lead to this gateway.
	ErrElsewhere = errors.New("the public hostname does not lead here")
	// ErrProgram means that the official program is missing or ended.
	ErrProgram = errors.New("cloudflared does not run")
)

// refusedError is the edge's answer to a registration it does not want.
type refusedError struct {
	cause string
	retry bool
	after time.Duration
}

func (e *refusedError) Error() string { return fmt.Sprintf("the edge refused: %q", e.cause) }

// Is makes a refusal that no retry can mend one of class ErrRefused.
func (e *refusedError) Is(target error) bool {
	return target == ErrRefused && !e.retry && e.cause != causeDuplicate
}

// dialError is a connection that was never made: another address may do better.
type dialError struct{ err error }

func (e *dialError) Error() string { return e.err.Error() }
func (e *dialError) Unwrap() error { return e.err }

// classify puts a failed handshake into one of our classes.
func classify(err error) error {
	var unknown x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	switch {
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return fmt.Errorf("%w: %w", ErrClock, err)
	case errors.As(err, &unknown), errors.As(err, &invalid):
		return fmt.Errorf("%w: %w", ErrUntrusted, err)
	}
	return fmt.Errorf("%w: %w", ErrUnreachable, err)
}
