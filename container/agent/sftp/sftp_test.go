package sftp_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	client "github.com/pkg/sftp"

	"github.com/berth-gpu/berth/container/agent/sftp"
)

const serveEnv = "BERTH_TEST_SFTP"

// TestMain runs the server where OpenSSH's `sftp -D` starts us as one.
func TestMain(m *testing.M) {
	if dir := os.Getenv(serveEnv); dir != "" {
		if err := sftp.Serve(context.Background(), sftp.Options{In: os.Stdin, Out: os.Stdout, Dir: dir}); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// need skips a test for a missing tool, or fails it where REQUIRE names what it belongs to.
func need(tb testing.TB, tool, belongs string) {
	tb.Helper()
	if _, err := exec.LookPath(tool); err != nil {
		if slices.Contains(strings.Split(os.Getenv("REQUIRE"), ","), belongs) {
			tb.Fatalf("%s is required", tool)
		}
		tb.Skipf("%s is missing", tool)
	}
}

// batch runs OpenSSH's sftp against our server in dir and returns what it printed.
func batch(t *testing.T, dir, commands string) (string, error) {
	t.Helper()
	need(t, "sftp", "openssh")
	cmd := exec.CommandContext(t.Context(), "sftp", "-b", "-", "-D", os.Args[0])
	cmd.Env = append(os.Environ(), serveEnv+"="+dir)
	cmd.Dir = t.TempDir()
	cmd.Stdin = strings.NewReader(commands)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestOpenSSHClient(t *testing.T) {
	far, near := t.TempDir(), t.TempDir()
	big := bytes.Repeat([]byte("0123456789abcdef"), 1<<18) // 4 MiB, more than one request
	write(t, near+"/big", big)
	write(t, far+"/part", big[:1<<20])
	out, err := batch(t, far, strings.Join([]string{
		"put " + near + "/big up", "get up " + near + "/down", "reput " + near + "/big part",
		"mkdir d", "put " + near + "/big d/x", "rename d/x d/y", "ln -s ../blobs/x link", "ln d/y hard", "ls -la", "df", "chmod 4750 up", "pwd", "cp up copy",
	}, "\n"))
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, path := range []string{far + "/up", near + "/down", far + "/part", far + "/d/y", far + "/hard", far + "/copy"} {
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, big) {
			t.Errorf("%s: %d bytes, %v", path, len(got), err)
		}
	}
	if target, err := os.Readlink(far + "/link"); err != nil || target != "../blobs/x" {
		t.Errorf("the link leads to %q, %v", target, err)
	}
	if st, err := os.Stat(far + "/up"); err != nil || st.Mode() != 0o750|os.ModeSetuid {
		t.Errorf("mode is %v, %v", st.Mode(), err)
	}
	if !strings.Contains(out, "drwx") || !strings.Contains(out, "Remote working directory: "+far) {
		t.Errorf("sftp printed %s", out)
	}
	if out, err := batch(t, far, "get missing "+near+"/x"); err == nil || !strings.Contains(out, "not found") {
		t.Errorf("a missing file: %v, %s", err, out)
	}
}

// connect joins pkg/sftp's client to a server in dir.
func connect(tb testing.TB, dir string) *client.Client {
	tb.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	served := make(chan error, 1)
	go func() {
		served <- sftp.Serve(context.Background(), sftp.Options{In: inR, Out: outW, Dir: dir})
		_ = outW.Close()
	}()
	c, err := client.NewClientPipe(outR, inW, client.UseConcurrentWrites(true))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		_ = c.Close()
		_ = inW.Close()
		if err := <-served; err != nil {
			tb.Errorf("serve: %v", err)
		}
	})
	return c
}

func TestRename(t *testing.T) {
	dir := t.TempDir()
	c := connect(t, dir)
	write(t, dir+"/a", []byte("a"))
	write(t, dir+"/b", []byte("b"))
	if err := os.Mkdir(dir+"/full", 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, dir+"/full/x", nil)
	if err := c.Rename("a", "b"); err == nil {
		t.Error("a plain rename replaced a file")
	}
	if got, _ := os.ReadFile(dir + "/b"); string(got) != "b" {
		t.Errorf("b holds %q after a refused rename", got)
	}
	if err := c.PosixRename("a", "full"); err == nil {
		t.Error("a full directory was replaced")
	}
	if err := c.PosixRename("a", "b"); err != nil {
		t.Error(err)
	}
	if got, _ := os.ReadFile(dir + "/b"); string(got) != "a" {
		t.Errorf("b holds %q after posix-rename", got)
	}
	if err := c.Rename("full", "moved"); err != nil {
		t.Errorf("a directory: %v", err)
	}
	if err := c.Rename("b", "c"); err != nil {
		t.Error(err)
	}
}

func TestAttributes(t *testing.T) {
	dir := t.TempDir()
	c := connect(t, dir)
	f, err := c.Create("f")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	late := time.Date(2050, 1, 2, 3, 4, 5, 0, time.UTC)
	if err := c.Chtimes("f", late, late); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	st, err := c.Stat("f")
	if err != nil || !st.ModTime().Equal(late) || st.Size() != 5 {
		t.Errorf("after the close: %v %v %v", st.ModTime(), st.Size(), err)
	}
	if err := c.Truncate("f", 100<<30); err != nil {
		t.Errorf("a sparse file of 100 GiB: %v", err)
	}
	if st, err := c.Stat("f"); err != nil || st.Size() != 100<<30 {
		t.Errorf("sparse: %v, %v", st, err)
	}
	if err := c.Symlink("f", "l"); err != nil {
		t.Fatal(err)
	}
	if st, err := c.Lstat("l"); err != nil || st.Mode()&os.ModeSymlink == 0 {
		t.Errorf("lstat of a link: %v, %v", st, err)
	}
	if st, err := c.Stat("l"); err != nil || !st.Mode().IsRegular() {
		t.Errorf("stat of a link: %v, %v", st, err)
	}
	if err := c.Symlink("loop", "loop"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Stat("loop"); err == nil {
		t.Error("a loop was followed")
	}
	if vfs, err := c.StatVFS("."); err != nil || vfs.Blocks == 0 || vfs.Namemax == 0 {
		t.Errorf("statvfs: %+v, %v", vfs, err)
	}
}

func TestManyOddNames(t *testing.T) {
	dir := t.TempDir()
	c := connect(t, dir)
	want := []string{"a b", "q'uote\"", "new\nline", "latin\xe9", "-dash", "star*", strings.Repeat("x", 255)}
	for i := range 5000 {
		want = append(want, fmt.Sprint("file-", i))
	}
	for _, name := range want {
		f, err := c.Create(name)
		if err != nil {
			t.Fatalf("%q: %v", name, err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	infos, err := c.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, i := range infos {
		got = append(got, i.Name())
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%d names came back of %d", len(got), len(want))
	}
}

func TestAppendAndRemove(t *testing.T) {
	dir := t.TempDir()
	c := connect(t, dir)
	write(t, dir+"/log", []byte("one\n"))
	f, err := c.OpenFile("log", os.O_WRONLY|os.O_APPEND)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte("two\n")); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(filepath.Join(dir, "log")); string(got) != "one\ntwo\n" {
		t.Errorf("appended to %q", got)
	}
	if err := c.Remove("log"); err != nil {
		t.Error(err)
	}
	if err := c.Mkdir("d"); err != nil {
		t.Error(err)
	}
	if err := c.RemoveDirectory("d"); err != nil {
		t.Error(err)
	}
	if _, err := c.Open("/proc/1/mem-nothing"); !os.IsNotExist(err) {
		t.Errorf("a missing file is %v", err)
	}
	if real, err := c.RealPath("sub/../new"); err == nil {
		t.Errorf("a path through nothing became %q", real)
	}
	if real, err := c.RealPath("new"); err != nil || real != filepath.Join(dir, "new") {
		t.Errorf("the last part may be missing: %q, %v", real, err)
	}
}

func TestManyHandles(t *testing.T) {
	dir := t.TempDir()
	c := connect(t, dir)
	write(t, dir+"/f", []byte("x"))
	opened := 0
	for range 600 {
		if _, err := c.Open("f"); err != nil {
			break
		}
		opened++
	}
	if opened != 512 {
		t.Errorf("%d files could be open at once", opened)
	}
}
