package tui

import (
	"context"
	"errors"

	"github.com/berth-gpu/berth/container"
	"github.com/berth-gpu/berth/gateway/control"
	"github.com/berth-gpu/berth/gateway/link"
)

// hintFor says what to do about a class of errors.
func hintFor(err error) string {
	for _, h := range hints {
		if errors.Is(err, h.class) {
			return h.hint
		}
	}
	return "the log has more: `berth log`"
}

var hints = []struct {
	class error
	hint  string
}{
	{control.ErrNotRunning, "start it with `berth up`"},
	{context.DeadlineExceeded, "the gateway is busy; `berth doctor` checks what it stands on"},
	{link.ErrUnknown, "it was removed meanwhile"},
	{link.ErrEnded, "make a new one with n"},
	{link.ErrTooLong, "a link can last a year from now at most"},
	{link.ErrDurable, "free some disk space where the state directory is"},
	{container.ErrUnavailable, "start Docker: `systemctl start docker`; `berth doctor` checks it"},
	{container.ErrNoImage, "check the image's name"},
	{container.ErrNoSpace, "free some disk space: `docker system df` shows Docker's share"},
	{container.ErrNoSubnet, "remove unused networks: `docker network prune`"},
	{container.ErrInvalid, "change what it says and try again"},
}
