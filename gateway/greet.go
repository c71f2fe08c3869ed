package gateway

import (
	"fmt"
	"strings"
	"time"

	"github.com/berth-gpu/berth/gateway/link"
)

// warnAt are the times before a link's end at which its terminals are warned.
var warnAt = []time.Duration{10 * time.Minute, time.Minute}

// greet says on a new terminal what the guest was lent. Pipes never see it.
func (c *channel) greet() {
	l, ok := c.session.live.s.Book.Get(c.session.live.id)
	if !ok || c.what != "shell" {
		return
	}
	c.out.Lock()
	defer c.out.Unlock()
	_, _ = c.raw.Write([]byte(crlf(greeting(l, c.session.live.s.Now()))))
}

// greeting is the short text at the top of a new terminal.
func greeting(l link.Link, now time.Time) string {
	var b strings.Builder
	fmt.Fprintf(&b, "berth: %s, %s, until %s (%s left)\n", machine(l.Terms), network(l.Terms.Network),
		l.EndsAt.UTC().Format("Mon 15:04 UTC"), roughly(l.EndsAt.Sub(now)))
	fmt.Fprintf(&b, "berth: files in your home %s; the host can watch\n", fate(l.Terms))
	b.WriteString("berth: type `berth status`, `berth invite`, `berth attach` or `berth done`\n")
	return b.String()
}

func machine(t link.Terms) string {
	parts := []string{"no GPU"}
	if t.GPU != "" && t.GPU != "none" {
		parts[0] = "GPU " + t.GPU
	}
	if t.CPUs > 0 {
		parts = append(parts, fmt.Sprintf("%g CPUs", t.CPUs))
	}
	if t.Memory > 0 {
		parts = append(parts, fmt.Sprintf("%.3g GiB memory", float64(t.Memory)/(1<<30)))
	}
	return strings.Join(parts, ", ")
}

func network(n string) string {
	switch n {
	case "none":
		return "no network"
	case "lan":
		return "internet and LAN"
	default:
		return "internet"
	}
}

func fate(t link.Terms) string {
	if t.Workspace != "" {
		return "are kept as " + t.Workspace
	}
	return "go when the link ends"
}

// roughly writes a duration the way a person says it.
func roughly(d time.Duration) string {
	switch {
	case d < 0:
		return "no time"
	case d < 2*time.Minute:
		return fmt.Sprintf("%.0f s", d.Seconds())
	case d < 2*time.Hour:
		return fmt.Sprintf("%.0f min", d.Minutes())
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %02d min", int(d.Hours()), int(d.Minutes())%60)
	default:
		return fmt.Sprintf("%d days", int(d.Hours())/24)
	}
}

func warning(left time.Duration, t link.Terms) string {
	return fmt.Sprintf("this link ends in %s; files in your home %s", roughly(left), fate(t))
}

// complain puts a line where the guest reads errors: the terminal, or stderr. The bytes of
// stdout are never touched.
func (c *channel) complain(text string) {
	if c.pty != nil {
		c.out.Lock()
		defer c.out.Unlock()
		_, _ = c.raw.Write([]byte("berth: " + text + "\r\n"))
		return
	}
	_, _ = c.raw.Stderr().Write([]byte("berth: " + text + "\n"))
}

// finish ends the channel from our side, with the reason.
func (c *channel) finish(why string) {
	c.mu.Lock()
	what, p, terminal := c.what, c.proc, c.terminal
	c.ended = true
	c.mu.Unlock()
	switch {
	case what == "":
		return // a forward, or nothing yet: the connection's close says it
	case terminal && p.Farewell(why) == nil && c.wait(farewellTimeout/2):
	case what != "sftp":
		c.complain(why)
	}
	c.exit(exitStatus{code: exitEnded})
}

// wait waits until the terminal's last byte is out, and says whether it is.
func (c *channel) wait(d time.Duration) bool {
	select {
	case <-c.drained:
		return true
	case <-c.gone:
		return true
	case <-time.After(d):
		return false
	}
}

func crlf(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") }
