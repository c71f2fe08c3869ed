package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"syscall"
	"time"
)

// GuestSocket is where the guest's `berth` command finds the agent: an abstract name,
// unix(7), that only this container's network namespace has and nobody can replace.
const GuestSocket = "@berth-agent"

// maxCalls is how many of the guest's questions may be open at once.
const maxCalls = 8

const callTimeout = 30 * time.Second

// calls matches the guest's questions with the gateway's answers.
type calls struct {
	mu      sync.Mutex
	last    uint64
	waiting map[uint64]chan *Reply
}

func (c *calls) open() (uint64, chan *Reply, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.waiting) >= maxCalls {
		return 0, nil, errors.New("too many questions at once, try again")
	}
	c.last++
	ch := make(chan *Reply, 1)
	c.waiting[c.last] = ch
	return c.last, ch, nil
}

func (c *calls) close(id uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waiting, id)
}

func (c *calls) answer(id uint64, r *Reply) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ch := c.waiting[id]; ch != nil && r != nil {
		ch <- r
		delete(c.waiting, id)
	}
}

// fail answers every open question: the gateway went away.
func (c *calls) fail() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, ch := range c.waiting {
		ch <- &Reply{Error: "the gateway went away, try again in a moment"}
		delete(c.waiting, id)
	}
}

// listenGuest serves the guest's `berth` command until ctx ends.
func (s *server) listenGuest(ctx context.Context) error {
	name := s.options.GuestSocket
	if name == "" {
		name = GuestSocket
	}
	ln, err := (&net.ListenConfig{}).Listen(ctx, "unix", name)
	if err != nil {
		return fmt.Errorf("listen for the guest: %w", err)
	}
	context.AfterFunc(ctx, func() { _ = ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go s.serveGuest(c)
		}
	}()
	return nil
}

// serveGuest answers one question: a Call as JSON, then a Reply as JSON.
func (s *server) serveGuest(c net.Conn) {
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(callTimeout))
	var call Call
	if err := json.NewDecoder(io.LimitReader(c, 4096)).Decode(&call); err != nil {
		return
	}
	_ = json.NewEncoder(c).Encode(s.ask(&call))
}

func (s *server) ask(call *Call) *Reply {
	if call.Verb == "attach" {
		return &Reply{Text: s.terminalsText()}
	}
	id, ch, err := s.calls.open()
	if err != nil {
		return &Reply{Error: err.Error()}
	}
	defer s.calls.close(id)
	s.out.Lock()
	away := s.up == nil
	s.out.Unlock()
	if away {
		return &Reply{Error: "the gateway is away, try again in a moment"}
	}
	s.send(&Frame{Op: OpCall, ID: id, Call: call})
	select {
	case r := <-ch:
		return r
	case <-time.After(callTimeout):
		return &Reply{Error: "the gateway did not answer, try again"}
	}
}

// terminalsText lists the terminals for the guest, with the line that shares one.
func (s *server) terminalsText() string {
	var b strings.Builder
	for _, t := range s.list() {
		state := "in use"
		if len(t.Guests) == 0 {
			state = "waits since " + t.Left.UTC().Format("15:04 UTC")
		}
		fmt.Fprintf(&b, "%3d  %d×%d  %-22s %s\n", t.Number, t.Size.Cols, t.Size.Rows, state, cmp.Or(t.Command, "shell"))
	}
	if b.Len() == 0 {
		return "there is no terminal now"
	}
	b.WriteString("share one with `ssh -t … berth attach N`, from a window of your own machine")
	return b.String()
}

// Ask is the guest's side: it puts one question to the agent.
func Ask(ctx context.Context, verb string) (Reply, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, "unix", GuestSocket)
	if err != nil {
		return Reply{}, fmt.Errorf("reach the agent: %w", err)
	}
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(callTimeout))
	if err := json.NewEncoder(c).Encode(Call{Verb: verb}); err != nil {
		return Reply{}, fmt.Errorf("ask the agent: %w", err)
	}
	var r Reply
	if err := json.NewDecoder(io.LimitReader(c, 1<<16)).Decode(&r); err != nil {
		return Reply{}, fmt.Errorf("read the answer: %w", err)
	}
	return r, nil
}

// killAll ends every process of the guest before PID 1 goes: a hang-up first, then no choice.
func (s *server) killAll() {
	s.mu.Lock()
	var pids []int
	for _, c := range s.children {
		pids = append(pids, c.pid)
	}
	s.mu.Unlock()
	for _, pid := range pids {
		_ = s.reaper.signal(pid, syscall.SIGHUP)
	}
}
