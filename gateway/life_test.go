package gateway_test

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	gossh "golang.org/x/crypto/ssh"

	"github.com/berth-gpu/berth/container"
	"github.com/berth-gpu/berth/gateway"
	"github.com/berth-gpu/berth/gateway/gatewaytest"
	"github.com/berth-gpu/berth/gateway/link"
)

// screen is a shell on a terminal: what was typed and what was shown.
type screen struct {
	sess  *gossh.Session
	keys  io.Writer
	mu    sync.Mutex
	shown bytes.Buffer
	done  chan error
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shown.Write(p)
}

func (s *screen) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shown.String()
}

// shows waits until the screen has shown want.
func (s *screen) shows(t *testing.T, want string) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Logf("the screen showed %q", s.text())
		}
	}()
	gatewaytest.Eventually(t, "the screen shows "+want, func() bool { return strings.Contains(s.text(), want) })
}

func (s *screen) types(t *testing.T, keys string) {
	t.Helper()
	if _, err := io.WriteString(s.keys, keys); err != nil {
		t.Fatal(err)
	}
}

// shell opens a login shell on a terminal of 24 rows and 80 columns.
func shell(t *testing.T, client *gossh.Client) *screen {
	t.Helper()
	sess, err := client.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	s := &screen{sess: sess, done: make(chan error, 1)}
	sess.Stdout = s
	if s.keys, err = sess.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := sess.RequestPty("xterm", 24, 80, gossh.TerminalModes{gossh.ECHO: 1}); err != nil {
		t.Fatal(err)
	}
	if err := sess.Shell(); err != nil {
		t.Fatal(err)
	}
	go func() { s.done <- sess.Wait() }()
	return s
}

func TestShell(t *testing.T) {
	_, client := login(t)
	s := shell(t, client)
	s.shows(t, "berth status")
	s.types(t, "stty size; echo $((6*7))\n")
	s.shows(t, "24 80")
	s.shows(t, "42")
	if err := s.sess.WindowChange(50, 200); err != nil {
		t.Fatal(err)
	}
	s.types(t, "stty size\n")
	s.shows(t, "50 200")
	s.types(t, "sleep 100 & exit 3\n")
	err := <-s.done
	exit, ok := err.(*gossh.ExitError) //nolint:errorlint // x/crypto returns it bare
	if !ok || exit.ExitStatus() != 3 {
		t.Errorf("the shell ended with %v", err)
	}
}

// TestTerminalBytes: nothing is added to what the terminal itself makes of the bytes.
func TestTerminalBytes(t *testing.T) {
	_, client := login(t)
	sess, err := client.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	if err := sess.RequestPty("xterm", 24, 80, gossh.TerminalModes{}); err != nil {
		t.Fatal(err)
	}
	out, err := sess.Output(`stty raw; printf 'a\nb\nc'; head -c 200000 /dev/zero`)
	if want := "a\nb\nc" + strings.Repeat("\x00", 200000); err != nil || string(out) != want {
		t.Errorf("%d bytes, %.20q, %v", len(out), out, err)
	}
}

// TestReturnToTerminal: a guest whose connection was cut finds their terminal as they left it.
func TestReturnToTerminal(t *testing.T) {
	g := gatewaytest.Start(t)
	res := g.Share(link.Terms{})
	guest := &gatewaytest.Guest{Token: res.Token, Keys: []gossh.Signer{gatewaytest.NewKey(t)}}
	client, err := g.Dial(guest)
	if err != nil {
		t.Fatal(err)
	}
	s := shell(t, client)
	s.types(t, "mark=kept; echo before-$mark\n")
	s.shows(t, "before-kept")
	_ = client.Conn.Close()
	noSessions(t, g, res.Link.ID)
	if client, err = g.Dial(guest); err != nil {
		t.Fatal(err)
	}
	s = shell(t, client)
	s.shows(t, "before-kept")
	s.types(t, "echo after-$mark\n")
	s.shows(t, "after-kept")
	fresh := shell(t, client)
	fresh.types(t, "echo new-$mark-shell\n")
	fresh.shows(t, "new--shell")
	s.types(t, "exit\n")
	if err := <-s.done; err != nil {
		t.Errorf("exit after the return: %v", err)
	}
}

// TestRestartKeepsJobs: a new gateway on the same state finds links, keys and jobs in place.
func TestRestartKeepsJobs(t *testing.T) {
	g := gatewaytest.Start(t)
	res := g.Share(link.Terms{})
	guest := &gatewaytest.Guest{Token: res.Token, Keys: []gossh.Signer{gatewaytest.NewKey(t)}}
	client, err := g.Dial(guest)
	if err != nil {
		t.Fatal(err)
	}
	key := hostKey(t, g)
	s := shell(t, client)
	s.types(t, "mark=kept; echo ready-$mark\n")
	s.shows(t, "ready-kept")
	g.Restart()
	s.shows(t, "the gateway is restarting")
	if again := hostKey(t, g); again != key {
		t.Errorf("the host key changed from %s to %s", key, again)
	}
	gatewaytest.Eventually(t, "the container is taken up", func() bool { return state(t, g, res.Link.ID).Container == "ready" })
	if client, err = g.Dial(guest); err != nil {
		t.Fatal(err)
	}
	s = shell(t, client)
	s.types(t, "echo still-$mark\n")
	s.shows(t, "still-kept")
}

func hostKey(t *testing.T, g *gatewaytest.Gateway) string {
	t.Helper()
	var got string
	_, err := gossh.Dial("tcp", g.Addr, &gossh.ClientConfig{User: "keyscan", HostKeyCallback: func(_ string, _ netAddr, key gossh.PublicKey) error {
		got = gossh.FingerprintSHA256(key)
		return nil
	}})
	if err == nil || got == "" {
		t.Fatalf("key scan: %q, %v", got, err)
	}
	return got
}

func TestExpiry(t *testing.T) {
	g := gatewaytest.Start(t)
	res := g.Share(link.Terms{For: time.Hour})
	client, err := g.Dial(&gatewaytest.Guest{Token: res.Token, Keys: []gossh.Signer{gatewaytest.NewKey(t)}})
	if err != nil {
		t.Fatal(err)
	}
	s := shell(t, client)
	s.shows(t, "until")
	g.Clock.Move(51 * time.Minute)
	s.shows(t, "this link ends in 9 min")
	if _, err := g.Extend(t.Context(), res.Link.ID, time.Hour); err != nil {
		t.Fatal(err)
	}
	s.shows(t, "gave you more time")
	g.Clock.Move(55 * time.Minute)
	s.types(t, "echo still-$((1+1))\n")
	s.shows(t, "still-2")
	g.Clock.Move(15 * time.Minute)
	s.shows(t, "the time of this link is up; files in your home go when the link ends")
	receipt(t, g, res.Link.ID, link.Expired)
	gatewaytest.Eventually(t, "the end is in the log", func() bool { return strings.Contains(g.Log.String(), "link.cleaned") })
}

// receipt waits for the receipt of a link and checks that it passed.
func receipt(t *testing.T, g *gatewaytest.Gateway, id string, why link.Reason) gateway.Receipt {
	t.Helper()
	var found gateway.Receipt
	gatewaytest.Eventually(t, "there is a receipt", func() bool {
		all, err := g.Receipts(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range all {
			if r.Link == id {
				found = r
			}
		}
		return found.Link != ""
	})
	if found.Reason != why || len(found.Items) < 3 {
		t.Errorf("the receipt is %+v", found)
	}
	for _, item := range found.Items {
		if !item.OK {
			t.Errorf("%s failed: %s", item.Name, item.Detail)
		}
	}
	return found
}

// TestEndWhileDockerIsDead: the end holds at once, and cleaning catches up.
func TestEndWhileDockerIsDead(t *testing.T) {
	g := gatewaytest.Start(t)
	res := g.Share(link.Terms{})
	g.Boxes.Fail("Remove", container.ErrUnavailable)
	g.Boxes.Fail("Box", container.ErrUnavailable)
	ctx, cancel := contextWithTimeout(t, 500*time.Millisecond)
	defer cancel()
	v, err := g.Revoke(ctx, res.Link.ID)
	if err != nil || v.State != link.Ended {
		t.Fatalf("revoke: %+v, %v", v, err)
	}
	guest := &gatewaytest.Guest{Token: res.Token}
	if _, err := g.Dial(guest); err == nil {
		t.Error("a revoked link let a guest in")
	}
	g.Restart() // and a crash in the middle of it
	g.Boxes.Fail("Remove", nil)
	g.Boxes.Fail("Box", nil)
	receipt(t, g, res.Link.ID, link.Revoked)
}

func TestKick(t *testing.T) {
	g := gatewaytest.Start(t)
	res := g.Share(link.Terms{})
	guest := &gatewaytest.Guest{Token: res.Token, Keys: []gossh.Signer{gatewaytest.NewKey(t)}}
	client, err := g.Dial(guest)
	if err != nil {
		t.Fatal(err)
	}
	s := shell(t, client)
	s.shows(t, "until")
	v := state(t, g, res.Link.ID)
	if len(v.Sessions) != 1 || v.Sessions[0].Channels[0] != "shell" {
		t.Fatalf("sessions are %+v", v.Sessions)
	}
	if n, err := g.Kick(t.Context(), v.Sessions[0].ID); n != 1 || err != nil {
		t.Fatalf("kick: %d, %v", n, err)
	}
	s.shows(t, "the host closed this connection; your link stays good")
	noSessions(t, g, res.Link.ID)
	if _, err := run(g, guest, "true"); err != nil {
		t.Errorf("after the kick: %v", err)
	}
}

// TestTokenIsNowhere: a link's whole life leaves its token in no file and no log.
func TestTokenIsNowhere(t *testing.T) {
	g := gatewaytest.Start(t)
	res := g.Share(link.Terms{})
	guest := &gatewaytest.Guest{Token: res.Token, Keys: []gossh.Signer{gatewaytest.NewKey(t)}}
	if _, err := run(g, guest, "true"); err != nil {
		t.Fatal(err)
	}
	if _, err := g.Revoke(t.Context(), res.Link.ID); err != nil {
		t.Fatal(err)
	}
	receipt(t, g, res.Link.ID, link.Revoked)
	if _, err := run(g, guest, "true"); err == nil {
		t.Error("got in after the end")
	}
	if strings.Contains(g.Log.String(), res.Token) {
		t.Error("the token is in the log")
	}
	files := 0
	err := filepath.WalkDir(g.Dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if bytes.Contains(data, []byte(res.Token)) {
			t.Errorf("the token is in %s", path)
		}
		files++
		return err
	})
	if err != nil || files < 4 {
		t.Errorf("looked through %d files: %v", files, err)
	}
}
