//go:build integration

package container_test

import (
	"strings"
	"testing"

	"github.com/berth-gpu/berth/container"
)

// guestImage is the image that most tests use.
func guestImage(t *testing.T, e *container.Engine) string {
	t.Helper()
	if err := e.EnsureImage(t.Context(), container.ImageOptions{Progress: func(l string) { t.Log(l) }}); err != nil {
		t.Fatal(err)
	}
	return container.DefaultImage
}

func TestHardened(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	b := run(t, e, container.Spec{
		Link: "hard", Image: guestImage(t, e), Network: container.Internet, Memory: 256 << 20, CPUs: 0.5, PIDs: 100,
	})
	status := b.sh(t, "cat /proc/self/status")
	for _, want := range []string{
		"CapInh:\t0000000000000000", "CapPrm:\t0000000000000000", "CapEff:\t0000000000000000",
		"CapBnd:\t0000000000000000", "CapAmb:\t0000000000000000",
		"NoNewPrivs:\t1", "Seccomp:\t2", "Uid:\t1000\t1000\t1000\t1000", "Gid:\t1000\t1000\t1000\t1000",
	} {
		if !strings.Contains(status, want) {
			t.Errorf("no %q in\n%s", want, status)
		}
	}
	for _, c := range []struct{ name, line, want string }{
		{"user", "id -un", "guest"},
		{"home", "echo ~", "/home/guest"},
		{"home is written", "echo hello > ~/f && cat ~/f", "hello"},
		{"home has a template", "test -f ~/.bashrc && echo yes", "yes"},
		{"root is read-only", "touch /x 2>&1; touch /etc/x 2>&1; touch /usr/x 2>&1", "touch: cannot touch '/x': Read-only file system\ntouch: cannot touch '/etc/x': Read-only file system\ntouch: cannot touch '/usr/x': Read-only file system"},
		{"tmp executes", "cp /bin/true /tmp/t && /tmp/t && stat -c %a /tmp", "1777"},
		{"home executes", "cp /bin/true ~/t && ~/t && echo yes", "yes"},
		{"tmp is capped", "df --output=size /tmp | tail -1 | tr -d ' '", "65536"},
		{"shm is capped", "df --output=size /dev/shm | tail -1 | tr -d ' '", "131072"},
		{"run directory", "cd /run/user/1000 && touch x && stat -c '%u %a' .", "1000 700"},
		{"open files", "test $(ulimit -n) -ge 1024 && ulimit -c", "0"},
		{"our files are read-only", "touch /.berth/run/x /.berth/bin/x 2>&1 | grep -c 'Read-only'", "2"},
		{"agent is opaque", "cat /proc/1/environ /proc/1/maps 2>&1 | grep -c 'Permission denied'", "2"},
		{"agent's files", "ls /proc/1/fd 2>&1 | grep -c 'Permission denied'", "1"},
		{"no other processes", "ls /proc | grep -c '^[0-9]*$' | { read n; test $n -lt 10 && echo few; }", "few"},
		{"no gpu", "env | grep NVIDIA", "NVIDIA_VISIBLE_DEVICES=void"},
		{"names of the agent", "test $(readlink /.berth/bin/berth) = $(readlink /.berth/bin/scp) && readlink /.berth/bin/scp", "berth-agent"},
		{"host's addresses are not told", "ls /.berth/run", "agent.sock\nconfig.json\nprofile.sh"},
		{"hostname", "cat /proc/sys/kernel/hostname", "berth"},
		{"cgroup is hidden", "grep -c docker /proc/self/cgroup", "0"},
		{"no setuid", "chmod u+s ~/t 2>/dev/null; su -c id </dev/null 2>&1 | grep -c uid=0", "0"},
	} {
		out, _ := b.exec(t, "/bin/sh", "-c", c.line)
		if out != c.want {
			t.Errorf("%s: %s: got %q, want %q", c.name, c.line, out, c.want)
		}
	}
}
