package gateway

import (
	"errors"
	"fmt"

	"github.com/berth-gpu/berth/container"
	"github.com/berth-gpu/berth/gateway/link"
)

// Refusals that are not the book's.
var (
	errGuessing   = errors.New("too many wrong links from this address")
	errNotYet     = errors.New("not approved in time")
	errTurnedAway = errors.New("turned away by the host")
	errFull       = errors.New("too many sessions")
	errBusy       = errors.New("a guest without a key has one connection at a time")
	errNotReady   = errors.New("the container is not ready")
	errShutdown   = errors.New("the gateway is stopping")
)

// reason is the one plain line a refused guest reads. It tells someone who only guesses
// nothing that they did not know, and never shows a cause of ours.
func reason(err error) string {
	var ended *link.EndedError
	switch {
	case err == nil:
		return ""
	case errors.Is(err, link.ErrUnknown):
		return "no such link; check that you copied all of it, or ask the host for a new one"
	case errors.Is(err, errGuessing):
		return "too many wrong links from your address; wait a minute and try again"
	case errors.As(err, &ended):
		return endedText(ended)
	case errors.Is(err, link.ErrExpired):
		return "this link has expired; ask the host for a new one"
	case errors.Is(err, link.ErrClaimed):
		return "this link was already claimed with another key; use that key, or ask the host for a new link"
	case errors.Is(err, link.ErrKeyless):
		return "" // the client goes on without its key, which is how this link was claimed
	case errors.Is(err, errTurnedAway):
		return "the host did not let you in; ask them, then run the same command again"
	case errors.Is(err, errNotYet):
		return "the host has not approved you yet; run the same command again in a moment"
	case errors.Is(err, errFull):
		return "too many sessions on this link; close one and try again"
	case errors.Is(err, errBusy):
		return "this link is in use by a guest without a key, who has one connection at a time; run `berth invite` inside for another link"
	case errors.Is(err, link.ErrDurable):
		return "the host cannot write down your claim (is its disk full?); nothing is lost, try again in a while"
	default:
		return guestText(err)
	}
}

// guestText says what failed on the host's side in words that help a guest.
func guestText(err error) string {
	switch {
	case errors.Is(err, errShutdown):
		return "the gateway is stopping; try again in a moment"
	case errors.Is(err, container.ErrNoSpace):
		return "the host's disk is full; your link stays good, try again later or tell the host"
	case errors.Is(err, container.ErrUnavailable), errors.Is(err, container.ErrAgentGone), errors.Is(err, errNotReady):
		return "your container is not ready; your link stays good, try again in a few seconds"
	default:
		return "something failed on the host's side; your link stays good, try again or tell the host"
	}
}

func endedText(e *link.EndedError) string {
	at := e.At.UTC().Format("2006-01-02 15:04 UTC")
	switch e.Reason {
	case link.Expired:
		return fmt.Sprintf("this link expired on %s; ask the host for a new one", at)
	case link.Revoked:
		return fmt.Sprintf("the host took this link back on %s", at)
	case link.Finished:
		return fmt.Sprintf("this link was given back on %s", at)
	}
	return "this link has ended"
}
