package gateway

import (
	"net"
	"strconv"

	gossh "golang.org/x/crypto/ssh"

	"github.com/berth-gpu/berth/container/agent"
)

// ptyRequest is what a client said of its terminal, RFC 4254 section 6.2.
type ptyRequest struct {
	term  string
	size  agent.Size
	modes []byte
}

// windowSize is how sizes travel: columns, rows, pixels.
type windowSize struct{ Cols, Rows, Width, Height uint32 }

func (w windowSize) size() agent.Size {
	return agent.Size{Cols: clip(w.Cols), Rows: clip(w.Rows), Width: clip(w.Width), Height: clip(w.Height)}
}

func clip(n uint32) uint16 { return uint16(min(n, 65535)) }

const maxTerm = 128

func (c *channel) setPTY(payload []byte) bool {
	var p struct {
		Term                      string
		Cols, Rows, Width, Height uint32
		Modes                     []byte
	}
	if gossh.Unmarshal(payload, &p) != nil || len(p.Term) > maxTerm {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pty != nil || c.what != "" {
		return false
	}
	c.pty = &ptyRequest{term: p.Term, size: windowSize{p.Cols, p.Rows, p.Width, p.Height}.size(), modes: p.Modes}
	return true
}

// resize passes a new size on, or notes it for a terminal that is not there yet.
func (c *channel) resize(payload []byte) bool {
	var p windowSize
	if gossh.Unmarshal(payload, &p) != nil {
		return false
	}
	c.mu.Lock()
	if c.pty != nil {
		c.pty.size = p.size()
	}
	c.mu.Unlock()
	c.flushSize()
	return true
}

// flushSize tells the running terminal its newest size.
func (c *channel) flushSize() {
	c.mu.Lock()
	p, runs := c.proc, c.terminal
	var size agent.Size
	if c.pty != nil {
		size = c.pty.size
	}
	c.mu.Unlock()
	if !runs {
		return
	}
	c.in.Lock()
	defer c.in.Unlock()
	_ = agent.WriteSize(p.Stream, size) // a terminal that has just ended needs no size
}

func joinHostPort(host string, port uint32) string {
	return net.JoinHostPort(host, strconv.FormatUint(uint64(port), 10))
}
