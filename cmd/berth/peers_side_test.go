//go:build peers

package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/berth-gpu/berth/container"
	"github.com/berth-gpu/berth/gateway"
	"github.com/berth-gpu/berth/gateway/control"
)

// side is one of the two servers.
type side struct {
	name, user string
	port       int
	programs   func() []int // the processes that serve, without what they run for a guest

	// link makes a fresh way in, with nothing running for it yet where cold, and takes it away.
	link func(cold bool) (target, func(), error)
}

// target is where a fresh link leads to.
type target struct {
	user string
	port int
}

// peersImage is the guest image with the distribution's openssh-server in it.
const peersImage = "berth-peers:12"

const peersDockerfile = `FROM ` + container.DefaultImage + `
RUN apt-get -q update && apt-get -q -y --no-install-recommends install openssh-server && mkdir -p /run/sshd /home/guest/.ssh
COPY key.pub /home/guest/.ssh/authorized_keys
RUN chown -R guest:guest /home/guest/.ssh && chmod 700 /home/guest/.ssh
`

func freePort(t *testing.T) int {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	return ln.Addr().(*net.TCPAddr).Port
}

// startBerth starts the program that was built, with one link that everything but the logins
// by a fresh link goes through.
func (b *bench) startBerth(t *testing.T) *side {
	t.Helper()
	state, port := filepath.Join(b.dir, "state"), freePort(t)
	program, err := filepath.Abs("../../bin/berth")
	if err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(b.dir, "berth.log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "up", "--headless", "--state", state, "--listen", "127.0.0.1:"+strconv.Itoa(port), "--sessions", "1000")
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatalf("%v (make build)", err)
	}
	client := &control.Client{Dir: state}
	t.Cleanup(func() {
		if list, err := client.List(context.Background()); err == nil {
			for _, l := range list {
				_, _ = client.Revoke(context.Background(), l.ID)
			}
		}
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
	})
	if !soon(func() bool { _, err := client.List(t.Context()); return err == nil }) {
		t.Fatalf("berth does not answer, see %s", log.Name())
	}
	s := &side{name: "berth", port: port}
	s.link = func(cold bool) (target, func(), error) { return berthLink(client, port, cold) }
	res, err := client.Share(t.Context(), gateway.ShareRequest{})
	if err != nil {
		t.Fatal(err)
	}
	s.user = res.Token
	agent := b.run(t, "docker", "inspect", "-f", "{{.State.Pid}}", "berth-"+res.Link.ID)
	s.programs = func() []int {
		pid, _ := strconv.Atoi(agent)
		return []int{cmd.Process.Pid, pid}
	}
	return s
}

// berthLink shares once more. A cold link is measured from the command on, so it is made by
// the caller's clock; making it starts its container either way.
func berthLink(client *control.Client, port int, _ bool) (target, func(), error) {
	res, err := client.Share(context.Background(), gateway.ShareRequest{})
	if err != nil {
		return target{}, nil, err
	}
	end := func() { _, _ = client.Revoke(context.Background(), res.Link.ID) }
	return target{res.Token, port}, end, nil
}

// startSSHD builds the twin image and runs sshd in it.
func (b *bench) startSSHD(t *testing.T) *side {
	t.Helper()
	build := filepath.Join(b.dir, "image")
	if err := os.Mkdir(build, 0o755); err != nil {
		t.Fatal(err)
	}
	key, err := os.ReadFile(filepath.Join(b.dir, "key.pub"))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"Dockerfile": peersDockerfile, "key.pub": string(key)} {
		if err := os.WriteFile(filepath.Join(build, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b.run(t, "docker", "build", "-q", "--network", "host", "-t", peersImage, build)
	s := &side{name: "sshd", user: "guest", port: freePort(t)}
	id, err := runSSHD(s.port)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { removeSSHD(id) })
	if !soon(func() bool { return answers(s.port) }) {
		t.Fatalf("sshd does not answer: %s", b.run(t, "docker", "logs", id))
	}
	s.programs = func() []int { return processes(id, "sshd") }
	s.link = func(cold bool) (target, func(), error) {
		if !cold {
			return target{s.user, s.port}, func() {}, nil
		}
		port := freePort(t)
		fresh, err := runSSHD(port)
		if err != nil {
			return target{}, nil, err
		}
		soon(func() bool { return answers(port) })
		return target{s.user, port}, func() { removeSSHD(fresh) }, nil
	}
	return s
}

// runSSHD starts a container as a person would, with the limits that would fail its part of
// the comparison lifted: by default sshd turns away more than ten logins at once.
func runSSHD(port int) (string, error) {
	out, err := exec.Command("docker", "run", "-d", "--network", "host", "-v", "/home/guest", peersImage, "/usr/sbin/sshd", "-D", "-e",
		"-p", strconv.Itoa(port), "-o", "ListenAddress=127.0.0.1", "-o", "MaxStartups=1000", "-o", "MaxSessions=1000").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("docker run: %w: %s", err, out)
	}
	return strings.TrimSpace(string(out)), nil
}

func removeSSHD(id string) { _ = exec.Command("docker", "rm", "-fv", id).Run() }

// processes are the host's pids of a container's processes of that name.
func processes(id, name string) []int {
	out, _ := exec.Command("docker", "top", id, "-eo", "pid,comm").Output()
	var pids []int
	for line := range strings.Lines(string(out)) {
		if f := strings.Fields(line); len(f) == 2 && f[1] == name {
			pid, _ := strconv.Atoi(f[0])
			pids = append(pids, pid)
		}
	}
	return pids
}

// answers reports whether an SSH server greets at port.
func answers(port int) bool {
	c, err := net.DialTimeout("tcp", "127.0.0.1:"+strconv.Itoa(port), time.Second)
	if err != nil {
		return false
	}
	defer func() { _ = c.Close() }()
	_ = c.SetReadDeadline(time.Now().Add(time.Second))
	head := make([]byte, 4)
	_, err = c.Read(head)
	return err == nil && string(head) == "SSH-"
}

// soon polls cond, quickly: what it waits for is timed.
func soon(cond func() bool) bool {
	end := time.After(time.Minute)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-end:
			return false
		case <-tick.C:
		}
	}
	return true
}

// writeConfig is the client's configuration: who and where, and nothing that changes how fast.
func (b *bench) writeConfig(t *testing.T, sides ...*side) {
	t.Helper()
	var text strings.Builder
	for _, s := range sides {
		fmt.Fprintf(&text, "Host %s\nUser %s\nPort %d\n", s.name, s.user, s.port)
	}
	fmt.Fprintf(&text, "Host *\nHostName 127.0.0.1\nIdentityFile %s/key\nIdentitiesOnly yes\nIdentityAgent none\n"+
		"StrictHostKeyChecking no\nUserKnownHostsFile /dev/null\nGlobalKnownHostsFile /dev/null\nLogLevel ERROR\n", b.dir)
	if err := os.WriteFile(b.config, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, s := range sides {
		b.run(t, "ssh", "-F", b.config, s.name, "true") // claims the link
	}
}

// programs' memory, in KiB: proportional, so that what processes share counts once.
func memory(pids []int) (float64, error) {
	var sum float64
	for _, pid := range pids {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
		if err != nil {
			return 0, err
		}
		for line := range strings.Lines(string(data)) {
			if rest, ok := strings.CutPrefix(line, "Pss:"); ok {
				n, _ := strconv.ParseFloat(strings.Fields(rest)[0], 64)
				sum += n
			}
		}
	}
	return sum, nil
}
