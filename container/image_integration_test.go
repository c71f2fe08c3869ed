//go:build integration

package container_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-gpu/berth/container"
)

func TestImageOfBusybox(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	ref := busybox(t, `ENV PATH="/opt/it's/bin:/bin"`, `ENV QUOTED="a b"`)
	b := run(t, e, container.Spec{Link: "busybox", Image: ref, Network: container.Internet})
	for _, c := range []struct{ line, want string }{
		{"id -un; id -g; echo ~", "guest\n1000\n/home/guest"},
		{"echo hi > ~/f && cat ~/f", "hi"},
		{"env -i sh -lc 'echo $PATH; echo $QUOTED' 2>&1 | head -1", "/sbin:/usr/sbin:/bin:/usr/bin"}, // without /etc/profile nothing is lost
		{". /etc/profile.d/zz-berth.sh && echo $PATH", "/opt/it's/bin:/bin:/.berth/bin"},
		{"env -i sh -c '. /etc/profile.d/zz-berth.sh && echo $QUOTED'", "a b"},
	} {
		if got := b.sh(t, c.line); got != c.want {
			t.Errorf("%s: got %q, want %q", c.line, got, c.want)
		}
	}
}

func TestImageWithoutShell(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	ref := image(t, map[string]string{"data": "nothing here runs"}, `ENTRYPOINT ["/nosuch"]`)
	b := run(t, e, container.Spec{Link: "noshell", Image: ref, Network: container.Internet})
	out, code := b.exec(t, "/.berth/bin/berth-agent", "status")
	if code != 0 || !strings.Contains(out, "Uid:\t1000") || !strings.Contains(out, "CapBnd:\t0000000000000000") {
		t.Errorf("exit %d: %s", code, out)
	}
}

func TestImagesUser(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	accounts := "root:x:0:0:root:/root:/bin/sh\nworker:x:1234:1235::/work:/bin/sh\n"
	bb, err := os.ReadFile("/bin/busybox")
	need(t, "busybox", err)
	ref := image(t, map[string]string{
		"bin/busybox": string(bb), "bin/sh": "-> busybox", "etc/passwd": accounts,
		"etc/group": "root:x:0:\nworkers:x:1235:\nextra:x:77:worker\n", "work/readme": "from the image",
	}, "USER worker")
	b := run(t, e, container.Spec{Link: "worker", Image: ref, Network: container.NoNet})
	if got := b.sh(t, "id; cat ~/readme; echo >> ~/readme && echo written"); got !=
		"uid=1234(worker) gid=1235(workers) groups=77(extra)\nfrom the imagewritten" {
		t.Errorf("got %q", got)
	}
	if got := b.sh(t, "cat /etc/passwd"); got+"\n" != accounts {
		t.Errorf("passwd was changed: %q", got)
	}
}

func TestRootLink(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	b := run(t, e, container.Spec{
		Link: "root", Image: guestImage(t, e), Network: container.Internet, Root: true, Writable: true,
	})
	status := b.sh(t, "cat /proc/self/status")
	for _, want := range []string{"CapPrm:\t00000000000004fb", "CapEff:\t00000000000004fb", "CapBnd:\t00000000000004fb", "CapInh:\t0000000000000000"} {
		if !strings.Contains(status, want) {
			t.Errorf("no %q in\n%s", want, status)
		}
	}
	for _, c := range []struct{ name, line, want string }{
		{"user", "id -u; echo ~", "0\n/root"},
		{"writable", "echo x > /etc/x && cat /etc/x", "x"},
		{"su", "su guest -c 'id -un'", "guest"},
		{"users can be added", "useradd extra && id -un extra", "extra"},
		{"agent is opaque", "cat /proc/1/environ 2>&1 | grep -c 'Permission denied'", "1"},
		{"agent cannot be killed", "kill -9 1; kill -0 1 && echo alive", "alive"},
		{"no raw sockets", "python3 -c 'import socket; socket.socket(socket.AF_PACKET, socket.SOCK_RAW)' 2>&1 | grep -c 'not permitted'", "1"},
		{"no mounts", "mount -t tmpfs x /mnt 2>&1 | grep -c denied", "1"},
	} {
		if got, _ := b.exec(t, "/bin/sh", "-c", c.line); got != c.want {
			t.Errorf("%s: %s: got %q, want %q", c.name, c.line, got, c.want)
		}
	}
}

func TestMounts(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	dir := t.TempDir()
	for _, name := range []string{"ro", "rw"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Join(dir, name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name, "f"), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b := run(t, e, container.Spec{
		Link: "mounts", Image: guestImage(t, e), Network: container.NoNet,
		Mounts: []container.Mount{
			{Source: filepath.Join(dir, "ro"), Target: "/home/guest/ro"},
			{Source: filepath.Join(dir, "rw"), Target: "/data/rw", Write: true},
		},
	})
	b.sh(t, "touch /data/rw/made")
	if out, code := b.exec(t, "/bin/sh", "-c", "touch ~/ro/made"); code == 0 {
		t.Errorf("a read-only mount was written: %s", out)
	}
	info, err := os.Stat(filepath.Join(dir, "ro", "f"))
	if err != nil {
		t.Fatal(err)
	}
	if got := b.sh(t, "stat -c %u ~ ~/ro/f"); got != "1000\n0" {
		t.Errorf("owners of home and of the host's file %s: %q", info.Name(), got)
	}
}

func TestImageCannotBeGot(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	err := e.EnsureImage(t.Context(), container.ImageOptions{Ref: "127.0.0.1:1/berth/nosuch:1"})
	if !errors.Is(err, container.ErrNoImage) {
		t.Errorf("got %v, want ErrNoImage", err)
	}
	there, err := e.ImagePresent(t.Context(), "127.0.0.1:1/berth/nosuch:1")
	if err != nil || there {
		t.Errorf("present: %v, %v", there, err)
	}
}

// TestApt is what a Root link is for.
func TestApt(t *testing.T) {
	t.Parallel()
	if _, err := net.LookupHost("deb.debian.org"); err != nil {
		t.Skipf("no mirror to be reached: %v", err)
	}
	e := newEngine(t)
	b := run(t, e, container.Spec{
		Link: "apt", Image: guestImage(t, e), Network: container.Internet, Root: true, Writable: true,
	})
	out, code := b.exec(t, "/bin/sh", "-c", "apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -yq --no-install-recommends dbus && id messagebus && command -v dbus-daemon")
	if code != 0 {
		t.Errorf("exit %d: %s", code, out)
	}
}
