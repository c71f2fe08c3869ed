package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/berth-gpu/berth/container"
	"github.com/berth-gpu/berth/gateway/link"
)

// Share makes a link and starts its container. The link is in the book before anything is
// started for it; if the container cannot be started there is no link.
func (s *Server) Share(ctx context.Context, req ShareRequest) (ShareResult, error) {
	req = s.withDefaults(req)
	if err := s.Boxes.EnsureImage(ctx, container.ImageOptions{Ref: req.Terms.Image, Progress: Progress(ctx)}); err != nil {
		return ShareResult{}, fmt.Errorf("share: %w", err)
	}
	token, hash := link.Mint()
	now := s.Now()
	l := link.Link{
		ID: link.NewID(), Name: req.Name, State: link.Open, Terms: req.Terms, CreatedAt: now, ClaimBy: now.Add(req.TTL),
		Grants: []link.Grant{{Hash: hash}},
	}
	if l.Name == "" {
		l.Name = l.ID
	}
	if err := s.Book.Add(l); err != nil {
		return ShareResult{}, fmt.Errorf("share: %w", err)
	}
	s.note(Event{Event: "link.made", Link: l.ID, Detail: l.Name})
	if err := s.startFirst(ctx, l.ID); err != nil {
		s.abandon(l.ID)
		return ShareResult{}, fmt.Errorf("share: %w", err)
	}
	res := ShareResult{Link: s.view(l), Token: token.Reveal(), Doors: []DoorView{}}
	if s.Doors != nil {
		res.Doors = s.Doors(res.Token)
	}
	res.HostKey = s.hostKeyView(res.Doors)
	return res, nil
}

// withDefaults fills the gaps of req from the host's defaults.
func (s *Server) withDefaults(req ShareRequest) ShareRequest {
	d := ShareRequest{TTL: 24 * time.Hour, Terms: link.Terms{
		Image: container.DefaultImage, GPU: "none", For: 8 * time.Hour, Sessions: 10, Network: string(container.Internet),
	}}
	if s.Defaults != nil {
		fill(&d, s.Defaults())
	}
	fillFrom := d
	fill(&fillFrom, req)
	return fillFrom
}

// fill sets in d whatever from sets.
func fill(d *ShareRequest, from ShareRequest) {
	set(&d.Name, from.Name)
	set(&d.TTL, from.TTL)
	set(&d.Terms.Image, from.Terms.Image)
	set(&d.Terms.GPU, from.Terms.GPU)
	set(&d.Terms.For, from.Terms.For)
	set(&d.Terms.Sessions, from.Terms.Sessions)
	set(&d.Terms.CPUs, from.Terms.CPUs)
	set(&d.Terms.Memory, from.Terms.Memory)
	set(&d.Terms.SHM, from.Terms.SHM)
	set(&d.Terms.PIDs, from.Terms.PIDs)
	set(&d.Terms.Network, from.Terms.Network)
	set(&d.Terms.Workspace, from.Terms.Workspace)
	set(&d.Terms.Root, from.Terms.Root)
	set(&d.Terms.Writable, from.Terms.Writable)
	set(&d.Terms.Runtime, from.Terms.Runtime)
	set(&d.Terms.Approve, from.Terms.Approve)
	set(&d.Terms.KeepFor, from.Terms.KeepFor)
	if len(from.Terms.Mounts) > 0 {
		d.Terms.Mounts = slices.Clone(from.Terms.Mounts)
	}
}

func set[T comparable](to *T, v T) {
	var zero T
	if v != zero {
		*to = v
	}
}

// List returns every link that the book remembers, oldest first.
func (s *Server) List(context.Context) ([]LinkView, error) {
	views := []LinkView{}
	for _, l := range s.Book.List() {
		views = append(views, s.view(l))
	}
	return views, nil
}

// Show returns one link, by its id, the start of it, or its name.
func (s *Server) Show(_ context.Context, ref string) (LinkView, error) {
	l, err := s.Book.Find(ref)
	if err != nil {
		return LinkView{}, err
	}
	return s.view(l), nil
}

// Revoke ends a link now. It returns when the link is over and, within ctx, cleaned up after.
func (s *Server) Revoke(ctx context.Context, ref string) (LinkView, error) {
	l, err := s.Book.Find(ref)
	if err != nil {
		return LinkView{}, err
	}
	if l.State == link.Ended {
		return LinkView{}, fmt.Errorf("revoke: %w", &link.EndedError{Reason: l.Reason, At: l.EndedAt})
	}
	if err := s.end(ctx, l.ID, link.Revoked); err != nil {
		return LinkView{}, fmt.Errorf("revoke: %w", err)
	}
	return s.Show(ctx, l.ID)
}

// Extend gives a link more time, without anybody having to reconnect.
func (s *Server) Extend(_ context.Context, ref string, by time.Duration) (LinkView, error) {
	l, err := s.Book.Find(ref)
	if err != nil {
		return LinkView{}, err
	}
	if l, err = s.Book.Extend(l.ID, by); err != nil {
		return LinkView{}, fmt.Errorf("extend: %w", err)
	}
	s.note(Event{Event: "link.extended", Link: l.ID, Detail: by.String()})
	if v := s.find(l.ID); v != nil && l.State == link.Claimed {
		v.extended(l, s.Now())
	}
	return s.view(l), nil
}

// Kick closes the connections of a link, or one session, and keeps the link. A guest who waits
// for approval is turned away, even if they are gone by now. It returns how many were closed.
func (s *Server) Kick(_ context.Context, ref string) (int, error) {
	const why = "the host closed this connection; your link stays good"
	for _, v := range s.snapshot() {
		for _, sess := range v.list() {
			if sess.id == ref {
				sess.close(why)
				s.note(Event{Event: "session.kicked", Link: v.id, Session: sess.id})
				return 1, nil
			}
		}
	}
	l, err := s.Book.Find(ref)
	if err != nil {
		return 0, err
	}
	v := s.find(l.ID)
	if v == nil {
		return 0, nil
	}
	s.note(Event{Event: "session.kicked", Link: l.ID})
	return v.turnAway() + v.closeSessions(why), nil
}

// Approve lets the guest in who waits for it, or the next one who comes.
func (s *Server) Approve(_ context.Context, ref string) (LinkView, error) {
	l, err := s.Book.Find(ref)
	if err != nil {
		return LinkView{}, err
	}
	was := l.State
	if l, err = s.Book.Approve(l.ID); err != nil {
		return LinkView{}, fmt.Errorf("approve: %w", err)
	}
	s.note(Event{Event: "link.approved", Link: l.ID, Key: guestName(l)})
	if was == link.Open && l.State == link.Claimed {
		s.note(Event{Event: "link.claimed", Link: l.ID, Key: guestName(l)})
	}
	s.approved.wake()
	return s.view(l), nil
}

// Receipts returns what was cleaned after each ended link, oldest first.
func (s *Server) Receipts(context.Context) ([]Receipt, error) {
	raw, err := s.Book.Receipts()
	if err != nil {
		return nil, err
	}
	all := make([]Receipt, 0, len(raw))
	for _, data := range raw {
		var r Receipt
		if err := json.Unmarshal(data, &r); err != nil {
			return nil, fmt.Errorf("read receipt: %w", err)
		}
		all = append(all, r)
	}
	return all, nil
}

// Events returns the last n events, oldest first; all of them when n is 0.
func (s *Server) Events(_ context.Context, n int) ([]Event, error) {
	return s.audit.last(n)
}

// startFirst brings a new link's container up while its host waits.
func (s *Server) startFirst(ctx context.Context, id string) error {
	v := s.live(id)
	if v == nil {
		return errShutdown
	}
	return v.settled(ctx)
}

// abandon takes back a link that never came to be.
func (s *Server) abandon(id string) {
	if err := s.end(s.ctx, id, link.Revoked); err != nil && !errors.Is(err, context.Canceled) {
		s.Log.Warn("take back link", "link", id, "cause", err)
	}
}
