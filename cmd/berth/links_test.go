package main

import (
	"strings"
	"testing"

	"github.com/berth-gpu/berth/gateway"
)

// TestGuestsWriteNoControlCodes: a guest chooses the name of a forward and of their client; the
// host's terminal must not obey it.
func TestGuestsWriteNoControlCodes(t *testing.T) {
	evil := "\x1b]0;pwned\a\u009b31m\r"
	l := gateway.LinkView{
		ID: "abcdefgh", Guest: "SHA256:x" + evil, Container: "failed: " + evil, Pending: "SHA256:y" + evil,
		Sessions: []gateway.SessionView{{ID: "s", Client: evil, Channels: []string{"forward " + evil}}},
	}
	var out strings.Builder
	printLink(&out, l)
	printLinks(&out, []gateway.LinkView{l})
	printEvents(&out, []gateway.Event{{Event: "session.opened", Detail: "direct " + evil}})
	if !strings.Contains(out.String(), "forward ?]0;pwned") {
		t.Fatalf("the forward is not even listed: %q", out.String())
	}
	if i := strings.IndexAny(out.String(), "\x1b\a\r\u009b"); i >= 0 {
		t.Errorf("a control code gets through: %q", out.String()[max(0, i-20):])
	}
}
