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

// cleanTries is how often cleaning is tried while Docker answers, before the receipt says
// what could not be cleaned.
const cleanTries = 5

// end ends a link: written down first, then told, then cleaned. It returns an error only when
// the end could not be written; cleaning goes on by itself until it succeeds, and end waits
// for it only within ctx.
func (s *Server) end(ctx context.Context, id string, why link.Reason) error {
	l, err := s.Book.End(id, why)
	if err != nil {
		return err
	}
	done := s.startCleaning(l)
	select {
	case <-done:
	case <-ctx.Done():
	}
	return nil
}

// startCleaning cleans up after an ended link in the background, once; the channel is closed when
// it is through.
func (s *Server) startCleaning(l link.Link) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if done := s.cleaning[l.ID]; done != nil {
		return done
	}
	done := make(chan struct{})
	s.cleaning[l.ID] = done
	s.work.Go(func() {
		defer func() {
			s.mu.Lock()
			delete(s.cleaning, l.ID)
			s.mu.Unlock()
			close(done)
		}()
		s.guarded("end of "+l.ID, func() { s.clean(l) })
	})
	return done
}

// clean tells the guest, stops what runs, takes everything away and files the receipt.
func (s *Server) clean(l link.Link) {
	s.note(Event{Event: "link.ended", Link: l.ID, Detail: string(l.Reason)})
	sessions := s.dismiss(l)
	wait := minRetry
	for try := 1; ; try++ {
		items := append([]container.Item{sessions}, s.Boxes.Remove(s.ctx, container.RemoveOptions{Link: l.ID, KeepWorkspace: l.Terms.Workspace})...)
		failed := slices.ContainsFunc(items, func(i container.Item) bool { return !i.OK })
		if !failed || try >= cleanTries && s.dockerAnswers() {
			s.file(l, items)
			return
		}
		s.Log.Warn("cleaning again", "link", l.ID, "in", wait)
		select {
		case <-s.ctx.Done():
			return // taken up at the next start: the book says ended and not cleaned
		case <-time.After(wait):
		}
		wait = min(2*wait, maxRetry)
	}
}

func (s *Server) dockerAnswers() bool {
	_, err := s.Boxes.Box(s.ctx, "none")
	return err == nil || errors.Is(err, container.ErrNotFound)
}

// dismiss closes the link's sessions with the reason and lets go of its agent.
func (s *Server) dismiss(l link.Link) container.Item {
	item := container.Item{Name: "sessions", OK: true, Detail: "none were open"}
	s.mu.Lock()
	v := s.lives[l.ID]
	s.mu.Unlock()
	if v == nil {
		return item
	}
	v.mu.Lock()
	v.closed = true
	v.state = boxCleaning
	a := v.agent
	v.mu.Unlock()
	if n := v.closeSessions(farewell(l)); n > 0 {
		item.Detail = fmt.Sprintf("%d told and closed", n)
	}
	v.stop()
	if a != nil {
		a.Close()
	}
	<-v.kept
	s.mu.Lock()
	delete(s.lives, l.ID)
	s.mu.Unlock()
	return item
}

// farewell is the last line a guest reads: why, and what becomes of the files.
func farewell(l link.Link) string {
	why := map[link.Reason]string{
		link.Expired:  "the time of this link is up",
		link.Revoked:  "the host took this link back",
		link.Finished: "this link was given back",
	}[l.Reason]
	return why + "; files in your home " + fate(l.Terms)
}

// file writes the receipt, which also marks the link as cleaned.
func (s *Server) file(l link.Link, items []container.Item) {
	r := Receipt{Link: l.ID, Name: l.Name, Ended: l.EndedAt, Reason: l.Reason, Items: items}
	data, err := json.Marshal(r)
	if err == nil {
		err = s.Book.PutReceipt(l.ID, data)
	}
	if err != nil && !errors.Is(err, link.ErrExists) {
		s.Log.Error("file receipt", "link", l.ID, "cause", err)
		return
	}
	s.note(Event{Event: "link.cleaned", Link: l.ID, Detail: verdict(items)})
}

func verdict(items []container.Item) string {
	for _, i := range items {
		if !i.OK {
			return "failed: " + i.Name + ": " + i.Detail
		}
	}
	return "all clean"
}

// resume takes up the cleaning that a crash or a full disk interrupted.
func (s *Server) resume(context.Context) {
	for _, l := range s.Book.List() {
		if l.State == link.Ended && !l.Cleaned {
			s.startCleaning(l)
		}
	}
}
