package gateway

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/berth-gpu/berth/gateway/link"
)

// view shows a link with what runs for it.
func (s *Server) view(l link.Link) LinkView {
	v := LinkView{
		ID: l.ID, Name: l.Name, State: l.State, Reason: l.Reason, Image: l.Terms.Image, GPU: l.Terms.GPU,
		CreatedAt: l.CreatedAt, ClaimBy: l.ClaimBy, ClaimedAt: known(l.ClaimedAt), EndsAt: known(l.EndsAt),
		Guest: guestName(l), Terms: l.Terms, Container: boxGone, Doors: s.doorStates(), Sessions: []SessionView{},
	}
	if l.State == link.Open {
		if g, ok := s.Book.Pending(l.ID); ok {
			v.Pending = g.Fingerprint
		}
	}
	if l.State == link.Ended && !l.Cleaned {
		v.Container = boxCleaning
	}
	if run := s.find(l.ID); run != nil {
		run.mu.Lock()
		v.Container = run.state
		run.mu.Unlock()
		for _, sess := range run.list() {
			v.Sessions = append(v.Sessions, sess.view())
		}
		slices.SortFunc(v.Sessions, func(a, b SessionView) int { return a.Since.Compare(b.Since) })
	}
	return v
}

// ListDoors returns how each door is.
func (s *Server) ListDoors(context.Context) ([]DoorState, error) { return s.doorStates(), nil }

func (s *Server) doorStates() []DoorState {
	if s.Ways == nil {
		return []DoorState{}
	}
	return s.Ways()
}

func known(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// guestName is who holds the link: the fingerprint of the key that claimed it.
func guestName(l link.Link) string {
	var names []string
	for _, g := range l.Grants {
		if g.Bound() && !slices.Contains(names, g.Guest.Fingerprint) {
			names = append(names, g.Guest.Fingerprint)
		}
	}
	return strings.Join(names, ", ")
}

type progressKey struct{}

// WithProgress has slow verbs report what they are doing to fn, a line at a time.
func WithProgress(ctx context.Context, fn func(string)) context.Context {
	return context.WithValue(ctx, progressKey{}, fn)
}

// Progress returns what WithProgress set, or a function that drops the lines.
func Progress(ctx context.Context) func(string) {
	if fn, ok := ctx.Value(progressKey{}).(func(string)); ok {
		return fn
	}
	return func(string) {}
}
