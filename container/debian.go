package container

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/moby/moby/client"
)

// The default image: a small Debian that a guest can work in.
const (
	suite    = "bookworm"
	packages = "bash,ca-certificates,curl,git,iproute2,less,nano,openssh-client,procps,python3,rsync,tmux"
)

// buildLimit bounds a build: about a minute with a near mirror, much more with a slow one.
const buildLimit = 30 * time.Minute

// elsewhere is what to do where the default image cannot be built.
const elsewhere = "name another image with --image"

// buildDir holds builds under way. What a killed one leaves there, the sweep removes.
func (e *Engine) buildDir() string { return filepath.Join(e.dir, "build") }

// building tells whether a build is under way in this process.
func (e *Engine) building() bool {
	if !e.builds.TryLock() {
		return true
	}
	e.builds.Unlock()
	return false
}

// buildImage makes DefaultImage with debootstrap and imports it. Docker sees nothing of it
// before it is complete.
func (e *Engine) buildImage(ctx context.Context, o ImageOptions) error {
	e.builds.Lock()
	defer e.builds.Unlock()
	if there, err := e.ImagePresent(ctx, o.Ref); there || err != nil {
		return err // somebody else was quicker
	}
	if err := canBuild(); err != nil {
		return err
	}
	if err := os.MkdirAll(e.buildDir(), 0o700); err != nil {
		return fmt.Errorf("make build directory: %w", spaceClass(err))
	}
	root, err := os.MkdirTemp(e.buildDir(), "image-")
	if err != nil {
		return fmt.Errorf("make build directory: %w", spaceClass(err))
	}
	defer func() { _ = os.RemoveAll(root) }()
	// debootstrap makes the root's mode from the directory's.
	if err := os.Chmod(root, 0o755); err != nil {
		return fmt.Errorf("make build directory: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, buildLimit)
	defer cancel()
	b := build{ref: o.Ref, root: root, say: o.Progress, now: e.now, mirror: mirror(os.DirFS("/etc/apt"))}
	o.Progress("building " + o.Ref + " from " + b.mirror + ", this takes a minute or two")
	if err := b.bootstrap(ctx); err != nil {
		return err
	}
	o.Progress("importing " + o.Ref + " into Docker")
	return e.importImage(ctx, b)
}

// canBuild says what is missing for a build, and what to do about it.
func canBuild() error {
	if _, err := exec.LookPath("debootstrap"); err != nil {
		if !onDebian() {
			return fmt.Errorf("%w: it can be built on Debian only; %s", ErrNoImage, elsewhere)
		}
		return fmt.Errorf("%w: it is built with debootstrap, which is missing: apt-get install debootstrap, or %s",
			ErrNoImage, elsewhere)
	}
	if os.Geteuid() != 0 {
		return fmt.Errorf("%w: it can be built by root only; %s", ErrNoImage, elsewhere)
	}
	return nil
}

func onDebian() bool {
	data, _ := os.ReadFile("/etc/os-release")
	return strings.Contains("\n"+string(data), "\nID=debian")
}

// build is one run of debootstrap.
type build struct {
	ref    string // the image's name
	root   string
	mirror string
	say    func(string)
	now    func() time.Time
}

// bootstrap fills root.
func (b build) bootstrap(ctx context.Context) error {
	err := b.run(ctx, "debootstrap", "--variant=minbase", "--include="+packages, suite, b.root, b.mirror)
	if err != nil {
		return fmt.Errorf("debootstrap: %w", err)
	}
	err = b.run(ctx, "chroot", b.root, "useradd", "--create-home", "--shell", "/bin/bash", "--uid", "1000", "guest")
	if err != nil {
		return fmt.Errorf("add user: %w", err)
	}
	for _, name := range []string{"var/cache/apt/archives", "var/lib/apt/lists", "var/log", "debootstrap"} {
		if err := empty(filepath.Join(b.root, name)); err != nil {
			return fmt.Errorf("clean image: %w", err)
		}
	}
	return nil
}

// empty removes the files of a directory; its folders stay, since programs expect them.
func empty(dir string) error {
	root, err := os.OpenRoot(dir) // whatever is in there, nothing outside is touched
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	return fs.WalkDir(root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		return root.Remove(path)
	})
}

// run runs a tool and reports its progress. The tool gets mounts of its own, so that
// debootstrap's /proc goes with it however it ends, and is killed with all its children.
func (b build) run(ctx context.Context, name string, args ...string) error {
	runtime.LockOSThread() // Pdeathsig is about the thread that forked
	defer runtime.UnlockOSThread()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGTERM}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 10 * time.Second
	r, w := io.Pipe()
	cmd.Stdout, cmd.Stderr = w, w
	done := make(chan string)
	go func() { done <- b.follow(r) }()
	err := cmd.Run()
	_ = w.Close()
	last := <-done
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		if strings.Contains(last, "No space left on device") {
			return fmt.Errorf("%w: %s", ErrNoSpace, last)
		}
		return fmt.Errorf("%w: %w: %s; check the network and the mirror %s, or %s", ErrNoImage, err, last, b.mirror, elsewhere)
	}
	return nil
}

// follow passes a line on every few seconds and returns the last one, or the last that tells
// of an error.
func (b build) follow(r io.Reader) string {
	last, said := "", b.now()
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if line == "" {
			continue
		}
		if !strings.HasPrefix(last, "E: ") && !strings.Contains(last, "No space left") {
			last = line
		}
		if now := b.now(); now.Sub(said) >= progressEvery {
			said = now
			b.say(strings.TrimPrefix(line, "I: "))
		}
	}
	_, _ = io.Copy(io.Discard, r) // a line that is too long must not block the tool
	return last
}

// importImage hands root to Docker as an image.
func (e *Engine) importImage(ctx context.Context, b build) error {
	pack := exec.CommandContext(ctx, "tar", "--numeric-owner", "-C", b.root, "-c", ".")
	out, err := pack.StdoutPipe()
	if err != nil {
		return fmt.Errorf("pack image: %w", err)
	}
	if err := pack.Start(); err != nil {
		return fmt.Errorf("pack image: %w", err)
	}
	// The import ends with what tar writes, and must not take half of it for the whole.
	packed := &checkedReader{r: out, check: pack.Wait}
	_, err = ask(ctx, op{"import image", buildLimit}, func(ctx context.Context) (struct{}, error) {
		r, err := e.docker.ImageImport(ctx, client.ImageImportSource{Source: packed, SourceName: "-"}, b.ref,
			client.ImageImportOptions{Message: "built by berth", Changes: []string{
				"ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
				"ENV LANG=C.UTF-8",
				`CMD ["bash"]`,
			}})
		if err != nil {
			return struct{}{}, err
		}
		defer func() { _ = r.Close() }()
		_, err = io.Copy(io.Discard, r)
		return struct{}{}, err
	})
	if err != nil {
		_ = out.Close() // ends tar, if it still runs
		_ = pack.Wait()
		return err
	}
	if there, err := e.ImagePresent(ctx, b.ref); err != nil || !there {
		return errors.Join(err, fmt.Errorf("%w: Docker did not keep it", ErrNoImage))
	}
	return nil
}

// checkedReader turns the end of r into an error if check finds that it came too early.
type checkedReader struct {
	r     io.Reader
	check func() error
}

func (c *checkedReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	if !errors.Is(err, io.EOF) {
		return n, err
	}
	if failed := c.check(); failed != nil {
		return n, fmt.Errorf("pack image: %w", failed)
	}
	return n, io.EOF
}
