package gateway

import (
	gossh "golang.org/x/crypto/ssh"

	"github.com/berth-gpu/berth/container/agent"
)

// Exit codes of our own; a guest's own pass through.
const (
	exitNotFound = 127 // no such program in the image, as a shell says it
	exitEnded    = 254 // the link has ended
	exitGateway  = 255 // the gateway failed before or beside the command
)

// exitStatus is how something on a channel ended.
type exitStatus struct {
	code   int
	signal string // RFC 4254 name, empty for an ordinary exit
	core   bool
}

func exitOf(e agent.Exit) exitStatus {
	return exitStatus{code: e.Code, signal: e.Signal, core: e.Core}
}

// exit reports the end on the channel, RFC 4254 section 6.10: the end of output, the status
// or the signal, and then, by whoever holds the channel, its close. The first exit counts: the
// end of a link may come while the command ends by itself.
func (c *channel) exit(e exitStatus) {
	c.mu.Lock()
	first := !c.exited
	c.exited = true
	c.mu.Unlock()
	if !first {
		return
	}
	_ = c.raw.CloseWrite()
	if e.signal != "" {
		msg := struct {
			Signal     string
			CoreDumped bool
			Message    string
			Language   string
		}{Signal: e.signal, CoreDumped: e.core}
		_, _ = c.raw.SendRequest("exit-signal", false, gossh.Marshal(&msg))
		return
	}
	msg := struct{ Status uint32 }{uint32(e.code)}
	_, _ = c.raw.SendRequest("exit-status", false, gossh.Marshal(&msg))
}
