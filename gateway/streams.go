package gateway

import (
	"errors"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/berth-gpu/berth/container"
	"github.com/berth-gpu/berth/container/agent"
)

// runExec carries a command without a terminal. As with sshd the exit is reported after
// stdout and stderr reached their ends, and never waits for stdin. A client that goes away
// hangs its command up.
func (c *channel) runExec(a *container.Agent, st agent.Start) (exitStatus, error) {
	p, err := a.Exec(c.session.live.s.ctx, st)
	if err != nil {
		return exitStatus{}, err
	}
	defer p.Close()
	c.setProcess(p, false)
	go c.session.live.s.guarded("stdin", func() { feed(p.Stdin, c.raw) })
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		select {
		case <-ended:
		case <-c.gone:
			_ = p.Signal("HUP")
			p.Close()
		}
	}()
	var outputs sync.WaitGroup
	outputs.Go(func() { c.session.live.s.guarded("stdout", func() { _ = pump(c.raw, p.Stdout) }) })
	outputs.Go(func() { c.session.live.s.guarded("stderr", func() { _ = pump(c.raw.Stderr(), p.Stderr) }) })
	outputs.Wait()
	e, err := p.Wait(c.session.live.s.ctx)
	return exitOf(e), err
}

// feed copies the client's bytes to a command's stdin and passes their end on. A command that
// closed its stdin gets no more, but the client is read on: it may not know yet.
func feed(stdin *os.File, from io.Reader) {
	err := pump(stdin, from)
	_ = stdin.Close()
	if errors.Is(err, syscall.EPIPE) {
		_, _ = io.Copy(io.Discard, from)
	}
}

// runSFTP joins the channel and the sftp server's socket.
func (c *channel) runSFTP(a *container.Agent, st agent.Start) (exitStatus, error) {
	p, err := a.SFTP(c.session.live.s.ctx, st)
	if err != nil {
		return exitStatus{}, err
	}
	defer p.Close()
	c.setProcess(p, false)
	go c.session.live.s.guarded("sftp", func() {
		_ = pump(p.Stream, c.raw)
		_ = p.Stream.CloseWrite()
	})
	_ = pump(c.raw, p.Stream)
	e, err := p.Wait(c.session.live.s.ctx)
	return exitOf(e), err
}

// runTerminal joins the channel and a terminal of the agent's. A client that goes away
// leaves the terminal to itself: the guest's next login finds it as it was.
func (c *channel) runTerminal(a *container.Agent, st agent.Start) (exitStatus, error) {
	x := c.session
	st.Term, st.Size, st.Modes, st.Owner = c.pty.term, c.pty.size, c.pty.modes, x.owner()
	if l, ok := x.live.s.Book.Get(x.live.id); ok {
		st.Keep = int64(l.Terms.KeepFor / time.Second)
	}
	if st.Command == "" {
		st.Lost = x.live.lost(x)
	}
	c.greet()
	p, err := a.Terminal(x.live.s.ctx, st)
	if err != nil {
		return exitStatus{}, err
	}
	defer p.Close()
	c.setProcess(p, true)
	defer c.setProcess(nil, false)
	if c.isGone() {
		return exitStatus{}, nil
	}
	c.flushSize()
	go x.live.s.guarded("terminal input", func() { c.terminalInput(p) })
	c.terminalOutput(p)
	close(c.drained)
	switch {
	case c.isGone():
		return exitStatus{}, nil
	case c.isEnded():
		return exitStatus{code: exitEnded}, nil
	}
	e, err := p.Wait(x.live.s.ctx)
	return exitOf(e), err
}

func (c *channel) isGone() bool {
	select {
	case <-c.gone:
		return true
	default:
		return false
	}
}

func (c *channel) isEnded() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended
}

// terminalInput carries keys, in order with resizes. The end of the client's input is not the
// terminal's: as with sshd the program reads on.
func (c *channel) terminalInput(p *container.Process) {
	w := agent.StreamWriter{W: p.Stream}
	for {
		n, err := c.raw.Read(w.Room())
		if n > 0 {
			c.in.Lock()
			werr := w.Flush(agent.StreamData, n)
			c.in.Unlock()
			if werr != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (c *channel) terminalOutput(p *container.Process) {
	r := &agent.StreamReader{R: p.Stream}
	for {
		kind, body, err := r.Next()
		if err != nil {
			return
		}
		if kind != agent.StreamData {
			continue
		}
		c.out.Lock()
		_, err = c.raw.Write(body)
		c.out.Unlock()
		if err != nil {
			return
		}
	}
}
