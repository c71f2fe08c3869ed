package gateway

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/berth-gpu/berth/container"
	"github.com/berth-gpu/berth/container/agent"
	"github.com/berth-gpu/berth/container/agent/screen"
	"github.com/berth-gpu/berth/gateway/link"
)

// ErrNoTerminal is returned where a link or session has no terminal to look at.
var ErrNoTerminal = errors.New("no terminal is open there")

// TerminalView is a terminal that runs in a link's container. Command and Title are the guest's
// own words, without control characters.
type TerminalView struct {
	Link     string     `json:"link"`
	Number   int        `json:"number"`
	Sessions []string   `json:"sessions"` // ids of those who have it before them; none while its guest is away
	Command  string     `json:"command"`  // empty for a login shell
	Title    string     `json:"title"`
	Cols     int        `json:"cols"`
	Rows     int        `json:"rows"`
	Began    time.Time  `json:"began"`
	Left     *time.Time `json:"left"` // when its guest left; null while somebody is there
	Watchers int        `json:"watchers"`
}

// WatchRequest says which terminal to look at.
type WatchRequest struct {
	Ref      string `json:"ref"`                // a link, or a session's id
	Session  string `json:"session,omitempty"`  // one session of the link, or empty
	Terminal int    `json:"terminal,omitempty"` // by its number; 0: the newest that somebody has before them
}

// Picture is what a terminal shows. Its lines hold printable text and SGR sequences only,
// whatever the guest printed, so that they can be shown on the host's own terminal.
type Picture struct {
	Link     string `json:"link"`
	Terminal int    `json:"terminal"`
	screen.View
}

// pictureEvery bounds how often a Watch hands out a new picture.
const pictureEvery = 40 * time.Millisecond

// Terminals lists the terminals of a link, or of one session by its id, the oldest first.
func (s *Server) Terminals(ctx context.Context, ref string) ([]TerminalView, error) {
	v, session, err := s.watched(ref)
	if err != nil {
		return nil, fmt.Errorf("list terminals: %w", err)
	}
	all, err := v.terminals(ctx)
	if err != nil {
		return nil, fmt.Errorf("list terminals: %w", err)
	}
	if session != "" {
		all = slices.DeleteFunc(all, func(t TerminalView) bool { return !slices.Contains(t.Sessions, session) })
	}
	return all, nil
}

// Watch hands show a picture of a terminal now, and again whenever it changed, until ctx ends or
// the terminal does; the last is no error. A show that takes long misses pictures and holds
// nothing up. The guest is told when somebody begins to watch, and when nobody does any more.
func (s *Server) Watch(ctx context.Context, req WatchRequest, show func(Picture) error) error {
	v, session, err := s.watched(req.Ref)
	if err != nil {
		return fmt.Errorf("watch: %w", err)
	}
	if req.Session != "" {
		session = req.Session
	}
	number, err := v.pick(ctx, session, req.Terminal)
	if err != nil {
		return fmt.Errorf("watch: %w", err)
	}
	a, err := v.ready(ctx)
	if err != nil {
		return fmt.Errorf("watch: %w", err)
	}
	p, err := a.Watch(ctx, number)
	if errors.Is(err, container.ErrNoProgram) { // it ended just now
		err = ErrNoTerminal
	}
	if err != nil {
		return fmt.Errorf("watch: %w", err)
	}
	defer p.Close()
	v.watchBegan(p.Number)
	defer v.watchEnded(p.Number)
	w := &watching{stream: p, changed: make(chan struct{}, 1), done: make(chan struct{})}
	go s.guarded("watch", w.read)
	return w.show(ctx, func(view screen.View) error { return show(Picture{Link: v.id, Terminal: p.Number, View: view}) })
}

// watched finds what runs for a link, or for the session of that id.
func (s *Server) watched(ref string) (v *live, session string, err error) {
	for _, v := range s.snapshot() {
		for _, sess := range v.list() {
			if sess.id == ref {
				return v, sess.id, nil
			}
		}
	}
	l, err := s.Book.Find(ref)
	if err != nil {
		return nil, "", err
	}
	if l.State == link.Ended {
		return nil, "", &link.EndedError{Reason: l.Reason, At: l.EndedAt}
	}
	if v = s.find(l.ID); v == nil {
		return nil, "", ErrNoTerminal
	}
	return v, "", nil
}

// terminals asks the agent what runs, and finds who has it before them.
func (v *live) terminals(ctx context.Context) ([]TerminalView, error) {
	a, err := v.ready(ctx)
	if err != nil {
		return nil, err
	}
	raw, err := a.Terminals(ctx)
	if err != nil {
		return nil, err
	}
	shows := v.shows()
	all := make([]TerminalView, 0, len(raw))
	for _, t := range raw {
		one := TerminalView{
			Link: v.id, Number: t.Number, Sessions: []string{}, Command: plainText(t.Command), Title: plainText(t.Title),
			Cols: int(t.Size.Cols), Rows: int(t.Size.Rows), Began: t.Began, Left: known(t.Left), Watchers: t.Watchers,
		}
		for _, id := range t.Guests {
			if session := shows[id]; session != "" {
				one.Sessions = append(one.Sessions, session)
			}
		}
		all = append(all, one)
	}
	return all, nil
}

// shows maps what the agent calls our terminal channels to their sessions.
func (v *live) shows() map[uint64]string {
	ids := make(map[uint64]string)
	for _, sess := range v.list() {
		for _, c := range sess.all() {
			c.mu.Lock()
			if c.terminal {
				ids[c.proc.ID()] = sess.id
			}
			c.mu.Unlock()
		}
	}
	return ids
}

// pick chooses a terminal: the one with that number, or the newest that somebody has before
// them, or the newest. With a session, one of that session's.
func (v *live) pick(ctx context.Context, session string, number int) (int, error) {
	all, err := v.terminals(ctx)
	if err != nil {
		return 0, err
	}
	best := -1
	for i, t := range all {
		switch {
		case session != "" && !slices.Contains(t.Sessions, session):
		case number != 0 && t.Number != number:
		case best < 0, (t.Left == nil) != (all[best].Left == nil) && t.Left == nil,
			(t.Left == nil) == (all[best].Left == nil) && t.Began.After(all[best].Began):
			best = i
		}
	}
	if best < 0 {
		return 0, ErrNoTerminal
	}
	return all[best].Number, nil
}

// plainText keeps a guest's words from doing anything on the host's terminal.
func plainText(text string) string {
	const most = 256
	clean := strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
	if len(clean) > most {
		clean = strings.ToValidUTF8(clean[:most], "")
	}
	return clean
}

// watching turns a stream of the agent's into pictures. The bytes are the guest's: only what our
// own model makes of them goes on.
type watching struct {
	stream  *container.Process
	changed chan struct{} // has room for one: the picture is another one
	done    chan struct{} // closed when the stream has ended

	mu     sync.Mutex
	screen *screen.Screen // nil until the size came
}

func (w *watching) read() {
	defer close(w.done)
	r := agent.StreamReader{R: w.stream.Stream}
	for {
		kind, body, err := r.Next()
		if err != nil {
			return
		}
		w.take(kind, body)
		select {
		case w.changed <- struct{}{}:
		default:
		}
	}
}

func (w *watching) take(kind agent.StreamKind, body []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if kind == agent.StreamResize {
		if size, err := agent.ParseSize(body); err == nil {
			if w.screen == nil {
				w.screen = screen.New(int(size.Cols), int(size.Rows))
			}
			w.screen.Resize(int(size.Cols), int(size.Rows))
		}
		return
	}
	if w.screen != nil {
		_, _ = w.screen.Write(body)
	}
}

// view returns the picture now; false before there is one.
func (w *watching) view() (screen.View, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.screen == nil {
		return screen.View{}, false
	}
	return w.screen.View(), true
}

// show hands out pictures, not more often than pictureEvery.
func (w *watching) show(ctx context.Context, fn func(screen.View) error) error {
	pause := time.NewTicker(pictureEvery)
	defer pause.Stop()
	for {
		ended := false
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-w.done:
			ended = true
		case <-w.changed:
		}
		if v, ok := w.view(); ok {
			if err := fn(v); err != nil {
				return err
			}
		}
		if ended {
			return nil
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// watchLinger is how long after the last watcher left the guest is told: a host who looks from
// one terminal to the other and back is one who watches.
const watchLinger = 2 * time.Second

// watchBegan tells the guest, at the first watcher, and writes it down.
func (v *live) watchBegan(number int) {
	v.mu.Lock()
	if v.watchers == nil {
		v.watchers = make(map[int]int)
	}
	_, told := v.watchers[number]
	v.watchers[number]++
	v.mu.Unlock()
	if !told {
		v.s.note(Event{Event: "terminal.watched", Link: v.id, Detail: fmt.Sprintf("terminal %d", number)})
		v.notice(number, "the host is watching this terminal")
	}
}

// watchEnded tells the guest once nobody has watched for a moment.
func (v *live) watchEnded(number int) {
	v.mu.Lock()
	v.watchers[number]--
	v.mu.Unlock()
	time.AfterFunc(watchLinger, func() {
		v.mu.Lock()
		n, known := v.watchers[number]
		last := known && n == 0
		if last {
			delete(v.watchers, number)
		}
		v.mu.Unlock()
		if last {
			v.notice(number, "the host no longer watches")
		}
	})
}

func (v *live) notice(number int, text string) {
	if a := v.connected(); a != nil {
		ctx, cancel := context.WithTimeout(v.s.ctx, time.Second)
		defer cancel()
		_ = a.Notice(ctx, number, text) // an agent that is gone shows nothing more
	}
}
