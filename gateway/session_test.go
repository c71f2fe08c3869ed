package gateway_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	gossh "golang.org/x/crypto/ssh"

	"github.com/berth-gpu/berth/gateway/gatewaytest"
	"github.com/berth-gpu/berth/gateway/link"
)

func TestMain(m *testing.M) { gatewaytest.Main(m) }

// login shares a link and logs one guest with a key in.
func login(t *testing.T) (*gatewaytest.Gateway, *gossh.Client) {
	t.Helper()
	g := gatewaytest.Start(t)
	res := g.Share(link.Terms{})
	client, err := g.Dial(&gatewaytest.Guest{Token: res.Token, Keys: []gossh.Signer{gatewaytest.NewKey(t)}})
	if err != nil {
		t.Fatal(err)
	}
	return g, client
}

func TestExec(t *testing.T) {
	_, client := login(t)
	tests := []struct {
		name, command, stdin string
		stdout, stderr       string
		code                 int
		signal               string
	}{
		{name: "output", command: "printf 'a\\nb'", stdout: "a\nb"},
		{name: "separate stderr", command: "echo out; echo err >&2", stdout: "out\n", stderr: "err\n"},
		{name: "exit code", command: "exit 42", code: 42},
		{name: "not found", command: "/no/such/program", stderr: "No such file", code: 127},
		{name: "stdin ends", command: "wc -l", stdin: "a\nb\n", stdout: "2\n"},
		{name: "killed", command: "kill -9 $$", signal: "KILL"},
		{name: "terminated", command: "kill -TERM $$", signal: "TERM"},
		{name: "background with redirect", command: "sleep 100 >/dev/null 2>&1 </dev/null & echo started", stdout: "started\n"},
		{name: "no stdin wanted", command: "exec <&-; echo ok", stdin: strings.Repeat("x", 1<<20), stdout: "ok\n"},
		{name: "big output", command: "head -c 3000000 /dev/zero | tr '\\0' x", stdout: strings.Repeat("x", 3000000)},
		{name: "script on stdin", command: "bash -s", stdin: "echo from script\nexit 3\n", stdout: "from script\n", code: 3},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			sess, err := client.NewSession()
			if err != nil {
				t.Fatal(err)
			}
			var stdout, stderr bytes.Buffer
			sess.Stdout, sess.Stderr = &stdout, &stderr
			stdin, err := sess.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			go func() { // a command that wants no input may be gone before all is sent
				_, _ = io.WriteString(stdin, tt.stdin)
				_ = stdin.Close()
			}()
			err = sess.Run(tt.command)
			var exit *gossh.ExitError
			errors.As(err, &exit)
			if tt.signal != "" || tt.code != 0 {
				if exit == nil || exit.Signal() != tt.signal || tt.signal == "" && exit.ExitStatus() != tt.code {
					t.Errorf("ended with %v, want code %d signal %q", err, tt.code, tt.signal)
				}
			} else if err != nil {
				t.Errorf("ended with %v", err)
			}
			if stdout.String() != tt.stdout {
				t.Errorf("stdout is %.100q, want %.100q", stdout.String(), tt.stdout)
			}
			if !strings.Contains(stderr.String(), tt.stderr) {
				t.Errorf("stderr is %q, want %q", stderr.String(), tt.stderr)
			}
		})
	}
}

// TestLeavingHangsUp: a command without a terminal gets a hang-up when its client goes.
func TestLeavingHangsUp(t *testing.T) {
	g, client := login(t)
	watch, err := client.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	out, err := watch.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := watch.Start(`trap 'touch hung-up; exit' HUP; echo ready; while :; do read -t 1 _; done`); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 6)
	if _, err := io.ReadFull(out, line); err != nil {
		t.Fatal(err)
	}
	_ = client.Close()
	links, _ := g.List(t.Context())
	home := g.Boxes.Home(links[0].ID)
	gatewaytest.Eventually(t, "the command was hung up", func() bool { return exists(home + "/hung-up") })
}
