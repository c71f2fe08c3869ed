//go:build integration

package container_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/berth-gpu/berth/container"
)

// daemon is a Docker of the test's own, which may be stopped, filled up and starved.
type daemon struct {
	dir, host string
	cmd       *exec.Cmd
}

// ownDaemon starts a dockerd on a small disk with room for two networks.
func ownDaemon(t *testing.T) *daemon {
	t.Helper()
	_, err := exec.LookPath("dockerd")
	need(t, "docker", err)
	if os.Geteuid() != 0 {
		need(t, "docker", errors.New("a daemon of one's own needs root"))
	}
	dir, err := os.MkdirTemp("", "berth-dockerd-") //nolint:usetesting // a socket's path is short, unix(7)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	d := &daemon{dir: dir, host: "unix://" + dir + "/d.sock"}
	if err := os.Mkdir(dir+"/data", 0o700); err != nil {
		t.Fatal(err)
	}
	sh(t, "mount -t tmpfs -o size=300m berth-test "+dir+"/data")
	t.Cleanup(func() { sh(t, "umount -l "+dir+"/data") })
	d.start(t)
	t.Cleanup(func() { d.stop(t) })
	d.importBusybox(t)
	return d
}

func (d *daemon) start(t *testing.T) {
	t.Helper()
	log, err := os.Create(d.dir + "/log")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	d.cmd = exec.Command("dockerd", "-H", d.host, "--data-root", d.dir+"/data", "--exec-root", d.dir+"/exec",
		"--pidfile", d.dir+"/pid", "--iptables=false", "--bridge=none", "--default-address-pool", "base=10.213.213.0/27,size=28")
	d.cmd.Stdout, d.cmd.Stderr = log, log
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "dockerd answers", func() bool { return d.docker("version").Run() == nil })
}

// stop ends the daemon and, as a daemon without live-restore does, its containers.
func (d *daemon) stop(t *testing.T) {
	t.Helper()
	_ = d.cmd.Process.Signal(syscall.SIGTERM)
	if err := d.cmd.Wait(); err != nil {
		t.Logf("dockerd: %v", err)
	}
}

func (d *daemon) docker(args ...string) *exec.Cmd {
	return exec.Command("docker", append([]string{"-H", d.host}, args...)...)
}

func (d *daemon) importBusybox(t *testing.T) {
	t.Helper()
	data, err := os.ReadFile("/bin/busybox")
	need(t, "busybox", err)
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	err = w.WriteHeader(&tar.Header{Name: "bin/busybox", Mode: 0o755, Size: int64(len(data))})
	if err == nil {
		_, err = w.Write(data)
	}
	if err == nil {
		err = w.WriteHeader(&tar.Header{Name: "bin/sh", Typeflag: tar.TypeSymlink, Linkname: "busybox"})
	}
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	cmd := d.docker("import", "-", "bb:1")
	cmd.Stdin = &buf
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("import: %v: %s", err, out)
	}
}

func (d *daemon) engine(t *testing.T) *container.Engine {
	t.Helper()
	binary, err := testAgent()
	if err != nil {
		t.Fatal(err)
	}
	e, err := container.Open(container.Options{Dir: filepath.Join(t.TempDir(), "state"), Agent: binary, Host: d.host})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, i := range e.Sweep(background(t), container.SweepOptions{Now: time.Now().Add(time.Hour)}) {
			if !i.OK {
				t.Errorf("sweep: %s: %s", i.Name, i.Detail)
			}
		}
	})
	return e
}

// eventually polls a condition.
func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	end := time.After(60 * time.Second)
	for !cond() {
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("never: %s", what)
		}
	}
}

func TestDaemonOfItsOwn(t *testing.T) {
	t.Parallel()
	d := ownDaemon(t)
	e := d.engine(t)
	spec := func(link string) container.Spec {
		return container.Spec{Link: link, Image: "bb:1", Network: container.Internet}
	}

	t.Run("restarted", func(t *testing.T) {
		b := run(t, e, spec("restart"))
		b.sh(t, "echo kept > ~/f")
		d.stop(t)
		if err := e.Ping(t.Context()); !errors.Is(err, container.ErrUnavailable) {
			t.Errorf("Ping: %v", err)
		}
		if _, err := e.Box(t.Context(), "restart"); !errors.Is(err, container.ErrUnavailable) {
			t.Errorf("Box: %v", err)
		}
		d.start(t)
		if got, err := e.Box(t.Context(), "restart"); err != nil || got.Running {
			t.Errorf("after the restart: %+v, %v", got, err)
		}
		again, err := e.Run(t.Context(), spec("restart"))
		if err != nil || again.ID != b.ID || !again.Running {
			t.Errorf("Run again: %+v, %v, want container %s", again, err, b.ID)
		}
		allOK(t, e.Remove(t.Context(), container.RemoveOptions{Link: "restart"}))
	})

	t.Run("no networks left", func(t *testing.T) {
		for _, link := range []string{"net1", "net2"} {
			run(t, e, spec(link))
		}
		_, err := e.Run(t.Context(), spec("net3"))
		if !errors.Is(err, container.ErrNoSubnet) || !strings.Contains(err.Error(), "docker network prune") {
			t.Errorf("Run: %v", err)
		}
		if _, err := os.Stat(e.RunDir("net3")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("left: %v", err)
		}
		for _, link := range []string{"net1", "net2"} {
			allOK(t, e.Remove(t.Context(), container.RemoveOptions{Link: link}))
		}
	})

	t.Run("disk full", func(t *testing.T) {
		filler := d.dir + "/data/filler"
		_ = exec.Command("dd", "if=/dev/zero", "of="+filler, "bs=1M").Run()
		if free, err := e.FreeDisk(t.Context()); err != nil || free > 1<<20 {
			t.Errorf("free: %d, %v", free, err)
		}
		_, err := e.Run(t.Context(), spec("full"))
		if !errors.Is(err, container.ErrNoSpace) {
			t.Errorf("Run: %v", err)
		}
		if err := os.Remove(filler); err != nil {
			t.Fatal(err)
		}
		run(t, e, spec("full"))
		allOK(t, e.Remove(t.Context(), container.RemoveOptions{Link: "full"}))
	})
}
