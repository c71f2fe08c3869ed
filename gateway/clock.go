package gateway

import (
	"context"
	"time"

	"github.com/berth-gpu/berth/container"
	"github.com/berth-gpu/berth/gateway/link"
)

// How often the gateway looks at the clock, and at what a crash may have left.
const (
	tickEvery   = time.Second
	sweepEvery  = 2 * time.Minute
	sweepGrace  = time.Minute
	rememberFor = 30 * 24 * time.Hour // how long an ended link is still known by its token
)

// keepTime ends links whose time is up, warns before it is, and sweeps.
func (s *Server) keepTime() {
	tick := time.NewTicker(tickEvery)
	defer tick.Stop()
	var swept time.Time
	for {
		now := s.Now()
		s.guarded("clock", func() { s.tick(now) })
		if now.Sub(swept) >= sweepEvery || now.Before(swept) {
			swept = now
			s.work.Go(func() { s.guarded("sweep", func() { s.sweep(s.ctx, now) }) })
		}
		select {
		case <-s.ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// tick does what is due at now. A link whose end cannot be written, on a full disk say, is
// tried again at the next tick; meanwhile the book itself refuses it.
func (s *Server) tick(now time.Time) {
	for _, l := range s.Book.Due(now) {
		ended, err := s.Book.End(l.ID, link.Expired)
		if err != nil {
			s.Log.Error("end link", "link", l.ID, "cause", err)
			continue
		}
		s.startCleaning(ended)
	}
	for _, v := range s.snapshot() {
		if l, ok := s.Book.Get(v.id); ok && l.State == link.Claimed {
			v.warn(l, now)
		}
	}
}

// warn tells the link's terminals, once for each step, that its end is near.
func (v *live) warn(l link.Link, now time.Time) {
	left := l.EndsAt.Sub(now)
	step := stepFor(left, l.Terms.For)
	v.mu.Lock()
	due := step != 0 && (v.warned == 0 || step < v.warned)
	if due {
		v.warned = step
	}
	v.mu.Unlock()
	if due {
		v.notice(0, warning(left.Round(time.Second), l.Terms))
	}
}

// stepFor returns the warning that is due with this much time left, 0 for none. A link that
// is itself no longer than a step is not warned of it at once.
func stepFor(left, whole time.Duration) time.Duration {
	step := time.Duration(0)
	for _, at := range warnAt {
		if left <= at && whole > at {
			step = at
		}
	}
	return step
}

// extended forgets the warnings that the new end makes untrue and says so.
func (v *live) extended(l link.Link, now time.Time) {
	v.mu.Lock()
	told := v.warned != 0
	v.warned = 0
	v.mu.Unlock()
	if told {
		v.notice(0, "the host gave you more time: "+roughly(l.EndsAt.Sub(now))+" left")
	}
}

// sweep resumes interrupted cleaning, removes what no link knows and forgets what is long over.
func (s *Server) sweep(ctx context.Context, now time.Time) {
	s.resume(ctx)
	known := func(id string) bool {
		l, ok := s.Book.Get(id)
		return ok && (l.State != link.Ended || !l.Cleaned)
	}
	for _, item := range s.Boxes.Sweep(ctx, container.SweepOptions{Known: known, Grace: sweepGrace}) {
		s.Log.Info("swept", "what", item.Name, "ok", item.OK, "detail", item.Detail)
		s.note(Event{Event: "swept", Detail: item.Name + ": " + item.Detail})
	}
	if err := s.Book.Prune(now.Add(-rememberFor)); err != nil {
		s.Log.Warn("prune book", "cause", err)
	}
}
