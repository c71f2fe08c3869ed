//go:build integration

package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/berth-gpu/berth/gateway"
	"github.com/berth-gpu/berth/gateway/control"
)

// TestStory runs the stories of testdata/story: the real program, Docker and OpenSSH.
//
//	serve [FLAGS]           start `berth up` on $STATE and wait until it answers; log in $WORK/gateway.log
//	quit [SIGNAL]           end it (TERM) and wait until it is gone
//	share VAR [FLAGS]       make a link: $VAR is its token, $VAR_ID its id
//	key NAME                make a key pair $WORK/NAME
//	until SECONDS COMMAND…  run COMMAND until it succeeds
//	sums DIR…               print the checksums of what lies in each DIR; all must be equal
//	image NAME DIR          make a Docker image from a directory, for one story
//	build NAME DIR          make one from the Dockerfile in DIR
//
// What a story makes in Docker by itself is named after $UNIQ.
//
// $PORT is the gateway's port. ssh, scp, sftp and rsync find the gateway as the host "gw", through $CFG: `ssh -F $CFG
// -i k1 $A@gw`; nothing of the tester's own ssh set-up is used.
func TestStory(t *testing.T) {
	need(t, "docker", "docker", "version")
	need(t, "openssh", "ssh", "-V")
	for _, builtin := range []string{"cd", "cmp", "cp", "env", "exec", "exists", "grep", "kill", "rm", "skip", "stdin", "stop", "wait"} {
		if storyCmds[builtin] != nil {
			t.Fatalf("%q is testscript's own word: ours would never be called", builtin)
		}
	}
	testscript.Run(t, testscript.Params{Dir: "testdata/story", Setup: setUpStory, Cmds: storyCmds})
}

// storyCmds are the words of a story that testscript does not know, one a line.
var storyCmds = map[string]func(*testscript.TestScript, bool, []string){
	"build":  cmdBuild,
	"image":  cmdImage,
	"key":    cmdKey,
	"quit":   cmdQuit,
	"serve":  cmdServe,
	"share":  cmdShare,
	"sums":   cmdSums,
	"until":  cmdUntil,
	"client": cmdClient,
	"close":  cmdClose,
	"keys":   cmdKeys,
	"resize": cmdResize,
	"same":   cmdSame,
	"shows":  cmdShows,
	"snap":   cmdSnap,
	"term":   cmdTerm,
}

// need skips a test for a missing tool, or fails it where REQUIRE names the tool.
func need(t *testing.T, tool string, command ...string) {
	t.Helper()
	out, err := exec.Command(command[0], command[1:]...).CombinedOutput()
	if err == nil {
		return
	}
	if slices.Contains(strings.Split(os.Getenv("REQUIRE"), ","), tool) {
		t.Fatalf("%s is required: %v: %s", tool, err, out)
	}
	t.Skipf("%s is missing: %v", tool, err)
}

func setUpStory(e *testscript.Env) error {
	e.Setenv("HOME", e.WorkDir)
	e.Setenv("UNIQ", "berth-story-"+strings.ToLower(rand.Text())[:10])
	e.Setenv("STATE", filepath.Join(e.WorkDir, "state"))
	e.Setenv("BERTH_STATE", filepath.Join(e.WorkDir, "state"))
	e.Setenv("CFG", filepath.Join(e.WorkDir, "ssh_config"))
	e.Values["gateway"] = &running{}
	e.Defer(func() { e.Values["gateway"].(*running).cleanUp(e.WorkDir) })
	return nil
}

// running is a story's gateway process.
type running struct {
	cmd    *exec.Cmd
	done   chan struct{}
	port   int
	images []string
	tmux   bool // a server for windows runs
}

func gatewayOf(ts *testscript.TestScript) *running { return ts.Value("gateway").(*running) }

func cmdServe(ts *testscript.TestScript, neg bool, args []string) {
	r := gatewayOf(ts)
	if r.port == 0 {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		ts.Check(err)
		r.port = ln.Addr().(*net.TCPAddr).Port
		ts.Check(ln.Close())
	}
	state := ts.Getenv("STATE")
	log, err := os.OpenFile(ts.MkAbs("gateway.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	ts.Check(err)
	args = append([]string{"up", "--headless", "--debug", "--listen", "127.0.0.1:" + strconv.Itoa(r.port), "--state", state}, args...)
	berth, err := exec.LookPath("berth")
	ts.Check(err)
	r.cmd = exec.Command(berth, args...)
	ts.Setenv("PORT", strconv.Itoa(r.port))
	r.cmd.Dir, r.cmd.Stdout, r.cmd.Stderr = ts.MkAbs("."), log, log
	r.cmd.Env = append(os.Environ(), "HOME="+ts.MkAbs("."))
	ts.Check(r.cmd.Start())
	r.done = make(chan struct{})
	go func(cmd *exec.Cmd, done chan struct{}) { _ = cmd.Wait(); _ = log.Close(); close(done) }(r.cmd, r.done)
	client := &control.Client{Dir: state}
	up := eventually(60*time.Second, func() bool {
		select {
		case <-r.done:
			return true
		default:
		}
		_, err := client.List(context.Background())
		return err == nil
	})
	if !up || exited(r.done) {
		text, _ := os.ReadFile(ts.MkAbs("gateway.log"))
		ts.Fatalf("the gateway did not come up: %s", text)
	}
}

func exited(done chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

func cmdQuit(ts *testscript.TestScript, neg bool, args []string) {
	r := gatewayOf(ts)
	signal := "TERM"
	if len(args) > 0 {
		signal = args[0]
	}
	ts.Check(exec.Command("kill", "-"+signal, strconv.Itoa(r.cmd.Process.Pid)).Run())
	if !eventually(30*time.Second, func() bool { return exited(r.done) }) {
		ts.Fatalf("the gateway did not stop")
	}
}

func cmdShare(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) == 0 {
		ts.Fatalf("usage: share VAR [FLAGS]")
	}
	name := args[0]
	var res gateway.ShareResult
	out, err := berthOutput(ts, append([]string{"share", "--json"}, args[1:]...)...)
	ts.Check(err)
	ts.Check(json.Unmarshal(out, &res))
	door := slices.IndexFunc(res.Doors, func(d gateway.DoorView) bool { return d.Name == "direct" })
	if door < 0 {
		ts.Fatalf("the direct door is not open: %s", out)
	}
	port := res.Doors[door].Port
	ts.Setenv(name, res.Token)
	ts.Setenv(name+"_ID", res.Link.ID)
	_, hostKey, _ := strings.Cut(res.HostKey.KnownHosts, " ")
	known := fmt.Sprintf("%s\n[gw]:%d %s\n", res.HostKey.KnownHosts, port, hostKey)
	ts.Check(os.WriteFile(ts.MkAbs("known_hosts"), []byte(known), 0o600))
	config := fmt.Sprintf(`Host gw
HostName 127.0.0.1
HostKeyAlias gw
Port %d
UserKnownHostsFile %s
StrictHostKeyChecking yes
IdentityAgent none
IdentitiesOnly yes
LogLevel INFO
`, port, ts.MkAbs("known_hosts"))
	config = strings.Replace(config, "HostKeyAlias gw", "HostKeyAlias [gw]:"+strconv.Itoa(port), 1)
	ts.Check(os.WriteFile(ts.Getenv("CFG"), []byte(config), 0o600))
}

func berthOutput(ts *testscript.TestScript, args ...string) ([]byte, error) {
	berth, err := exec.LookPath("berth")
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(berth, args...)
	cmd.Env = append(os.Environ(), "BERTH_STATE="+ts.Getenv("STATE"), "HOME="+ts.MkAbs("."))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("berth %s: %w: %s", args[0], err, stderr.Bytes())
	}
	return out, nil
}

func cmdKey(ts *testscript.TestScript, neg bool, args []string) {
	for _, name := range args {
		ts.Check(exec.Command("ssh-keygen", "-qt", "ed25519", "-N", "", "-f", ts.MkAbs(name)).Run())
	}
}

func cmdUntil(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: until SECONDS COMMAND…")
	}
	seconds, err := strconv.Atoi(args[0])
	ts.Check(err)
	var last error
	if !eventually(time.Duration(seconds)*time.Second, func() bool {
		last = ts.Exec(args[1], args[2:]...)
		return (last == nil) != neg
	}) {
		ts.Fatalf("waited %d s in vain: %v", seconds, last)
	}
}

var leadingDir = regexp.MustCompile(`^\S+`)

func cmdSums(ts *testscript.TestScript, neg bool, args []string) {
	var first string
	for i, dir := range args {
		cmd := exec.Command("sh", "-c", "find . -type f -print0 | sort -z | xargs -0 -r sha256sum")
		cmd.Dir = ts.MkAbs(dir)
		out, err := cmd.Output()
		ts.Check(err)
		if len(out) == 0 {
			ts.Fatalf("there is nothing in %s", dir)
		}
		if i == 0 {
			first = string(out)
		} else if string(out) != first {
			ts.Fatalf("%s differs from %s:\n%s\n%s", dir, args[0], leadingDir.FindString(first), leadingDir.FindString(string(out)))
		}
	}
}

func cmdImage(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: image NAME DIR [CHANGE…]")
	}
	r := gatewayOf(ts)
	line := "tar -C " + ts.MkAbs(args[1]) + " -c . | docker import "
	for _, change := range args[2:] {
		line += "--change '" + change + "' "
	}
	out, err := exec.Command("sh", "-c", line+"- "+args[0]).CombinedOutput()
	if err != nil {
		ts.Fatalf("image: %v: %s", err, out)
	}
	r.images = append(r.images, args[0])
}

// cleanUp ends what a story left: its gateway, and everything in Docker with its state's label.
func (r *running) cleanUp(dir string) {
	if r.cmd != nil && !exited(r.done) {
		_ = r.cmd.Process.Kill()
		<-r.done
	}
	id, err := os.ReadFile(filepath.Join(dir, "state", "id"))
	if err == nil {
		label := "label=berth.state=" + strings.TrimSpace(string(id))
		for _, line := range []string{
			"docker ps -aq --filter " + label + " | xargs -r docker rm -fv",
			"docker network ls -q --filter " + label + " | xargs -r docker network rm",
			"docker volume ls -q --filter " + label + " | xargs -r docker volume rm -f",
		} {
			_ = exec.Command("sh", "-c", line).Run()
		}
	}
	for _, image := range r.images {
		_ = exec.Command("docker", "rmi", "-f", image).Run()
	}
}

func eventually(d time.Duration, cond func() bool) bool {
	deadline := time.After(d)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-deadline:
			return false
		case <-tick.C:
		}
	}
	return true
}
