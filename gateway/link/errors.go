package link

import (
	"errors"
	"fmt"
	"time"
)

// What the book answers when it refuses. Callers branch with errors.Is; no text of these
// errors contains a token, a hash or what the caller passed in.
var (
	ErrUnknown   = errors.New("unknown link")
	ErrAmbiguous = errors.New("more than one link matches")
	ErrExists    = errors.New("already in the link book")
	ErrInvalid   = errors.New("invalid change of a link")

	ErrClaimed = errors.New("link is claimed by another key")       // the grant belongs to a key that this guest did not prove
	ErrKeyless = errors.New("link was claimed without a key")       // a guest without a key holds the grant, and this one has a key
	ErrWaiting = errors.New("link waits for the host's approval")   // the guest is remembered, see Pending
	ErrEnded   = errors.New("link has ended")                       // any *EndedError
	ErrExpired = errors.New("link has expired")                     // an *EndedError whose reason is Expired
	ErrOpen    = errors.New("link is not claimed yet")              // what was asked needs a guest
	ErrAlive   = errors.New("link has not ended")                   // what was asked needs its end
	ErrTooMany = errors.New("link has as many tokens as it may")    // see MaxGrants
	ErrTooLong = errors.New("link would last longer than it may")   // see MaxSpan
	ErrDurable = errors.New("link book could not be written")       // the change did not happen; wraps the cause
	ErrLocked  = errors.New("link book is in use by another berth") // another process holds the file
	ErrDamaged = errors.New("not a link book, or a damaged one")    // the file was left as it is
)

// EndedError says why and when a link ended. It is ErrEnded, and ErrExpired as well when
// its time ran out, be it that nobody has swept it yet.
type EndedError struct {
	Reason Reason
	At     time.Time
}

// Error names the reason and the time in UTC.
func (e *EndedError) Error() string {
	return fmt.Sprintf("link has ended: %s on %s", e.Reason, e.At.UTC().Format(time.RFC3339))
}

// Is makes the error match ErrEnded, and ErrExpired where that is the reason.
func (e *EndedError) Is(target error) bool {
	return target == ErrEnded || target == ErrExpired && e.Reason == Expired
}
