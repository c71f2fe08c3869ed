//go:build integration

package container_test

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/berth-gpu/berth/container"
)

// need skips a test for want of a tool, unless REQUIRE names it.
func need(t *testing.T, tool string, err error) {
	t.Helper()
	if err == nil {
		return
	}
	if slices.Contains(strings.Split(os.Getenv("REQUIRE"), ","), tool) {
		t.Fatalf("%s is required: %v", tool, err)
	}
	t.Skipf("no %s: %v", tool, err)
}

// docker runs the docker command: a second opinion on what the engine says.
func docker(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command("docker", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("docker %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// testAgent builds testdata/agent once.
var testAgent = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "berth-agent-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	cmd := exec.Command("go", "build", "-o", filepath.Join(dir, "agent"), "./testdata/agent")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return nil, err
	}
	return os.ReadFile(filepath.Join(dir, "agent"))
})

// newEngine opens an engine on real Docker in a state directory of its own, and checks when
// the test ends that nothing with its label is left.
func newEngine(t *testing.T) *container.Engine {
	t.Helper()
	need(t, "docker", exec.Command("docker", "info").Run())
	binary, err := testAgent()
	if err != nil {
		t.Fatal(err)
	}
	e, err := container.Open(container.Options{Dir: filepath.Join(t.TempDir(), "state"), Agent: binary, Env: os.Getenv})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, i := range e.Sweep(background(t), container.SweepOptions{Now: time.Now().Add(time.Hour)}) {
			if !i.OK {
				t.Errorf("sweep after the test: %s: %s", i.Name, i.Detail)
			}
		}
		for _, kind := range []string{"ps -aq", "network ls -q", "volume ls -q"} {
			args := append(strings.Fields(kind), "--filter", "label="+container.LabelState+"="+e.State())
			left := strings.Fields(docker(t, args...))
			for _, id := range left {
				if kind == "volume ls -q" && strings.HasPrefix(id, "berth-ws-") {
					docker(t, "volume", "rm", id)
					continue
				}
				t.Errorf("%s has left %s", kind, id)
			}
		}
		_ = e.Close()
	})
	return e
}

// image imports a tar of files as an image that goes with the test.
func image(t *testing.T, files map[string]string, changes ...string) string {
	t.Helper()
	need(t, "docker", exec.Command("docker", "info").Run())
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for name, content := range files {
		h := &tar.Header{Name: name, Mode: 0o755, Size: int64(len(content)), Format: tar.FormatPAX}
		if to, ok := strings.CutPrefix(content, "-> "); ok {
			h.Typeflag, h.Linkname, h.Size, content = tar.TypeSymlink, to, 0, ""
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	ref := "berth-test-" + strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name())) + ":1"
	args := []string{"import"}
	for _, c := range changes {
		args = append(args, "-c", c)
	}
	cmd := exec.Command("docker", append(args, "-", ref)...)
	cmd.Stdin = &buf
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("docker import: %v: %s", err, out)
	}
	t.Cleanup(func() { docker(t, "rmi", "-f", ref) })
	return ref
}

// busybox is an image with nothing but busybox.
func busybox(t *testing.T, changes ...string) string {
	t.Helper()
	data, err := os.ReadFile("/bin/busybox")
	need(t, "busybox", err)
	return image(t, map[string]string{"bin/busybox": string(data), "bin/sh": "-> busybox"}, changes...)
}

// box is a running box and a line to the test agent in it.
type box struct {
	container.Box
	in  *json.Decoder
	out *json.Encoder
}

// run makes a box, whose agent the test can give commands.
func run(t *testing.T, e *container.Engine, s container.Spec) *box {
	t.Helper()
	if err := os.MkdirAll(e.RunDir(s.Link), 0o755); err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("unix", filepath.Join(e.RunDir(s.Link), "agent.sock"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	if err := os.Chmod(ln.Addr().String(), 0o666); err != nil {
		t.Fatal(err)
	}
	b, err := e.Run(background(t), s)
	if err != nil {
		t.Fatal(err)
	}
	return accept(t, ln, b)
}

func accept(t *testing.T, ln net.Listener, b container.Box) *box {
	t.Helper()
	_ = ln.(*net.UnixListener).SetDeadline(time.Now().Add(20 * time.Second))
	conn, err := ln.Accept()
	if err != nil {
		t.Fatalf("the agent did not come: %v", err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return &box{Box: b, in: json.NewDecoder(conn), out: json.NewEncoder(conn)}
}

// exec runs a command in the box as the guest.
func (b *box) exec(t *testing.T, argv ...string) (string, int) {
	t.Helper()
	if err := b.out.Encode(argv); err != nil {
		t.Fatal(err)
	}
	var answer struct {
		Out  string
		Code int
	}
	if err := b.in.Decode(&answer); err != nil {
		t.Fatalf("%q: %v", argv, err)
	}
	return strings.TrimSpace(answer.Out), answer.Code
}

// sh runs a line of shell that must succeed.
func (b *box) sh(t *testing.T, line string) string {
	t.Helper()
	out, code := b.exec(t, "/bin/sh", "-c", line)
	if code != 0 {
		t.Fatalf("%s: exit %d: %s", line, code, out)
	}
	return out
}

// background is a context that outlives the test's own, which ends before its clean-up.
func background(t *testing.T) context.Context {
	t.Helper()
	return context.WithoutCancel(t.Context())
}
