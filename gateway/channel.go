package gateway

import (
	"errors"
	"strings"
	"sync"

	gossh "golang.org/x/crypto/ssh"

	"github.com/berth-gpu/berth/container"
	"github.com/berth-gpu/berth/container/agent"
)

// channel is one session channel, RFC 4254 section 6: at most one shell, command or
// subsystem runs on it.
type channel struct {
	session *session
	conn    *gossh.ServerConn
	raw     gossh.Channel
	env     []string
	envSize int
	pty     *ptyRequest // nil without a terminal
	// agentSocket leads to the guest's ssh-agent; nil unless asked for.
	agentSocket *container.Listener
	gone        chan struct{} // closed when the client closed the channel or the connection died
	drained     chan struct{} // closed when all of a terminal's output is out

	mu       sync.Mutex // guards what is below
	what     string     // shell, exec, sftp; empty until asked for
	command  string
	exited   bool
	ended    bool // from our side: the link ended, or the host closed the connection
	proc     *container.Process
	terminal bool // proc is a terminal
	once     sync.Once

	in  sync.Mutex // orders frames to a terminal; taken alone
	out sync.Mutex // orders writes to raw; taken alone
}

// Limits on what a guest can make us remember before anything runs.
const (
	maxEnv     = 256
	maxEnvSize = 64 << 10
)

// channel serves one session channel until it is closed.
func (x *session) channel(conn *gossh.ServerConn, nc gossh.NewChannel) {
	raw, reqs, err := nc.Accept()
	if err != nil {
		return
	}
	c := &channel{session: x, conn: conn, raw: raw, gone: make(chan struct{}), drained: make(chan struct{})}
	x.track(c, "idle")
	defer x.untrack(c)
	defer func() {
		if c.agentSocket != nil {
			c.agentSocket.Close()
		}
	}()
	for req := range reqs {
		ok := c.request(req)
		if req.WantReply {
			_ = req.Reply(ok, nil)
		}
		c.begin()
	}
	close(c.gone) // whatever runs notices, and ends or is kept by its own rule
	c.leaveTerminal()
	c.closeIdle()
}

// request handles one request and says whether it was granted.
func (c *channel) request(req *gossh.Request) bool {
	switch req.Type {
	case "env":
		return c.setEnv(req.Payload)
	case "pty-req":
		return c.setPTY(req.Payload)
	case "shell":
		return c.want("shell", "")
	case "exec":
		var p struct{ Command string }
		return gossh.Unmarshal(req.Payload, &p) == nil && c.want("exec", p.Command)
	case "subsystem":
		var p struct{ Name string }
		return gossh.Unmarshal(req.Payload, &p) == nil && p.Name == "sftp" && c.want("sftp", "")
	case "window-change":
		return c.resize(req.Payload)
	case "auth-agent-req@openssh.com":
		return c.forwardAgent()
	case "signal":
		var p struct{ Name string }
		return gossh.Unmarshal(req.Payload, &p) == nil && c.signal(p.Name)
	default:
		return req.Type == "keepalive@openssh.com"
	}
}

// want notes what the client asked to run; begin starts it after the reply is out, so that
// the reply comes before the first byte.
func (c *channel) want(what, command string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.what != "" {
		return false
	}
	c.what, c.command = what, command
	return true
}

func (c *channel) setEnv(payload []byte) bool {
	var p struct{ Name, Value string }
	if gossh.Unmarshal(payload, &p) != nil || !envAllowed(p.Name) || strings.ContainsRune(p.Name+p.Value, 0) {
		return false
	}
	c.envSize += len(p.Name) + len(p.Value)
	if len(c.env) >= maxEnv || c.envSize > maxEnvSize {
		return false
	}
	c.env = append(c.env, p.Name+"="+p.Value)
	return true
}

// envAllowed reports whether a client may set this variable. What the image or the login
// decides stays theirs, and so does what would change how programs are found or loaded.
func envAllowed(name string) bool {
	if name == "" || strings.ContainsAny(name, "= \t\n") {
		return false
	}
	for _, prefix := range []string{"LD_", "NVIDIA_", "CUDA_VISIBLE_DEVICES", "BERTH_", "SSH_", "BASH_FUNC_"} {
		if strings.HasPrefix(name, prefix) {
			return false
		}
	}
	switch name {
	case "PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "IFS", "ENV", "BASH_ENV", "SHELLOPTS", "BASHOPTS", "GLIBC_TUNABLES":
		return false
	}
	return true
}

// signal passes a signal request on; there is something to signal only once it runs.
func (c *channel) signal(name string) bool {
	c.mu.Lock()
	proc := c.proc
	c.mu.Unlock()
	return proc != nil && proc.Signal(name) == nil
}

// begin starts what was asked for, once.
func (c *channel) begin() {
	c.mu.Lock()
	what := c.what
	c.mu.Unlock()
	if what == "" {
		return
	}
	c.once.Do(func() {
		c.session.track(c, what)
		go c.session.live.s.guarded("channel", func() { c.run(what) })
	})
}

// run starts the process, carries its bytes and reports how it ended.
func (c *channel) run(what string) {
	defer func() { _ = c.raw.Close() }()
	status, err := c.runProcess(what)
	if err != nil {
		status = c.explain(err)
	}
	c.exit(status)
}

func (c *channel) runProcess(what string) (exitStatus, error) {
	a, err := c.session.live.ready(c.session.live.s.ctx)
	if err != nil {
		return exitStatus{}, err
	}
	st := agent.Start{Command: c.command, Env: append(c.session.environ(), c.env...)}
	switch {
	case what == "sftp":
		return c.runSFTP(a, st)
	case c.pty != nil:
		return c.runTerminal(a, st)
	default:
		return c.runExec(a, st)
	}
}

// explain writes one plain line where the guest reads errors and picks the exit code.
func (c *channel) explain(err error) exitStatus {
	c.session.live.s.Log.Warn("channel failed", "link", c.session.live.id, "session", c.session.id, "cause", err)
	text, code := guestText(err), exitGateway
	if errors.Is(err, container.ErrNoProgram) {
		text, code = strings.TrimPrefix(err.Error(), container.ErrNoProgram.Error()+": "), exitNotFound
	}
	c.complain(text)
	return exitStatus{code: code}
}

// setProcess makes proc reachable for signals, and a terminal for resizes and notices.
func (c *channel) setProcess(p *container.Process, terminal bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.proc, c.terminal = p, terminal
}

// leaveTerminal lets go of a terminal whose client is gone.
func (c *channel) leaveTerminal() {
	c.mu.Lock()
	p, terminal := c.proc, c.terminal
	c.mu.Unlock()
	if terminal {
		c.session.live.leftTerminal(p.ID())
		p.Close()
	}
}

// closeIdle closes a channel on which nothing was ever started.
func (c *channel) closeIdle() {
	c.once.Do(func() { _ = c.raw.Close() })
}
