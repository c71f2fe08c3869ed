package gateway

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/berth-gpu/berth/gateway/link"
)

// guestVerb answers the `berth` command inside the container.
func (s *Server) guestVerb(_ context.Context, v *live, verb string) (string, error) {
	l, ok := s.Book.Get(v.id)
	if !ok || l.State != link.Claimed {
		return "", errors.New("this link has ended")
	}
	switch verb {
	case "status":
		return s.guestStatus(l, v), nil
	case "invite":
		return s.invite(l)
	case "done":
		s.note(Event{Event: "link.done", Link: l.ID})
		s.work.Go(func() {
			if err := s.end(s.ctx, l.ID, link.Finished); err != nil {
				s.Log.Error("end link", "link", l.ID, "cause", err)
			}
		})
		return "thank you; this link ends now", nil
	default:
		return "", fmt.Errorf("unknown verb %q", verb)
	}
}

func (s *Server) guestStatus(l link.Link, v *live) string {
	return fmt.Sprintf("link      %s\nends      %s (%s left)\nmachine   %s\nnetwork   %s\nfiles     your home %s\nsessions  %d of %d",
		l.Name, l.EndsAt.UTC().Format("2006-01-02 15:04 UTC"), roughly(l.EndsAt.Sub(s.Now())), machine(l.Terms), network(l.Terms.Network),
		fate(l.Terms), len(v.list()), l.Terms.Sessions)
}

// invite makes a companion token: a further way to this container, claimed by its first use
// just as the link was.
func (s *Server) invite(l link.Link) (string, error) {
	token, hash := link.Mint()
	err := s.Book.Companion(l.ID, hash)
	if errors.Is(err, link.ErrTooMany) {
		return "", errors.New("this link has as many invitations as it may")
	}
	if err != nil {
		s.Log.Error("invite", "link", l.ID, "cause", err)
		return "", errors.New("the host could not write the invitation down, try again")
	}
	s.note(Event{Event: "link.invited", Link: l.ID})
	var lines []string
	if s.Doors != nil {
		for _, d := range s.Doors(token.Reveal()) {
			lines = append(lines, d.SSH)
		}
	}
	if len(lines) == 0 { // no door is open at the moment
		lines = []string{token.Reveal()}
	}
	return strings.Join(lines, "\n"), nil
}
