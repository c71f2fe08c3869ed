package gateway

// forwardAgent gives this channel a socket inside the container that leads to the guest's own
// ssh-agent, OpenSSH's PROTOCOL.agent. It is this channel's alone, in a private directory,
// and goes with it; nothing of the agent's traffic is kept.
func (c *channel) forwardAgent() bool {
	if c.agentSocket != nil || c.conn == nil {
		return false
	}
	s := c.session.live.s
	a, err := c.session.live.ready(s.ctx)
	if err != nil {
		return false
	}
	ln, err := a.Listen(s.ctx, "unix", "")
	if err != nil {
		s.Log.Debug("agent forward refused", "session", c.session.id, "cause", err)
		return false
	}
	c.agentSocket = ln
	c.env = append(c.env, "SSH_AUTH_SOCK="+ln.Address)
	go s.guarded("agent forward", func() {
		for {
			in, err := ln.Accept()
			if err != nil {
				return
			}
			go s.guarded("agent forward", func() { c.session.carryTo(c.conn, in, outgoing{kind: "auth-agent@openssh.com", what: "agent"}) })
		}
	})
	return true
}
