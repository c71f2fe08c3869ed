package container

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// source runs the profile in a real shell and prints a variable.
func source(t *testing.T, shell, script, env, name string) string {
	t.Helper()
	path, err := exec.LookPath(shell)
	if err != nil {
		t.Skipf("no %s: %v", shell, err)
	}
	file := filepath.Join(t.TempDir(), "profile")
	if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	// A login shell reads profiles with whatever options its user has set; the strictest here.
	cmd := exec.Command(path, "-euc", `. "$1"; printf %s "${`+name+`-unset}"; echo; echo "left ${_berth_one-}${_berth_rest-}${_berth_path-}"`, "-", file)
	cmd.Env = []string{env}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", shell, err, out)
	}
	value, ok := strings.CutSuffix(string(out), "\nleft \n")
	if !ok {
		t.Errorf("%s: variables of ours are left: %s", shell, out)
	}
	return value
}

func TestProfile(t *testing.T) {
	for _, shell := range []string{"dash", "bash", "busybox"} {
		if shell == "busybox" {
			// Its sh is reached by name only.
			path, err := exec.LookPath("busybox")
			if err != nil {
				continue
			}
			shell = filepath.Join(t.TempDir(), "sh")
			if err := os.Symlink(path, shell); err != nil {
				t.Fatal(err)
			}
		}
		for _, c := range []struct{ name, path, env, variable, want string }{
			{"reset by /etc/profile", "/opt/conda/bin:/usr/bin", "PATH=/usr/bin:/bin", "PATH", "/opt/conda/bin:/usr/bin:/.berth/bin:/bin"},
			{"added by others", "/a", "PATH=/b:/a:/c", "PATH", "/a:/.berth/bin:/b:/c"},
			{"empty entries", "/a", "PATH=:/b::", "PATH", "/a:/.berth/bin:/b"},
			{"no path", "/a", "PATH=", "PATH", "/a:/.berth/bin"},
			{"odd path", "/a b:/it's:/$HOME:/`id`:/*", "PATH=/a b", "PATH", "/a b:/it's:/$HOME:/`id`:/*:/.berth/bin"},
			{"variable is gone", "/a", "X=1", "CUDA", "12 'x' \"y\" $(id) `id` \\ \n !!"},
			{"variable was set anew", "/a", "CUDA=mine", "CUDA", "mine"},
			{"variable is empty", "/a", "CUDA=", "CUDA", ""},
			{"home is the guest's", "/a", "X=1", "HOME", "unset"},
		} {
			env := []string{"PATH=" + c.path, "CUDA=12 'x' \"y\" $(id) `id` \\ \n !!", "HOME=/wrong", "BAD-NAME=1", "1BAD=2", "=3", "novalue"}
			if got := source(t, shell, profile(pathOf(env), env), c.env, c.variable); got != c.want {
				t.Errorf("%s: %s: got %q, want %q", shell, c.name, got, c.want)
			}
		}
	}
}

func TestPathOf(t *testing.T) {
	const usual = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/.berth/bin"
	for _, c := range []struct {
		env  []string
		want string
	}{
		{nil, usual},
		{[]string{"PATH="}, usual},
		{[]string{"PATH=/a", "PATH=/b"}, "/b:/.berth/bin"},
		{[]string{"PATH=/.berth/bin:/a"}, "/.berth/bin:/a"},
	} {
		if got := pathOf(c.env); got != c.want {
			t.Errorf("%v: got %s, want %s", c.env, got, c.want)
		}
	}
}

func FuzzQuote(f *testing.F) {
	for _, s := range []string{"", "'", "a'b", "$(id)", "\\", "\n", "'\\''"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if strings.ContainsRune(s, 0) {
			t.Skip("no environment holds a zero byte")
		}
		out, err := exec.Command("/bin/sh", "-c", "printf %s "+quote(s)).Output()
		if err != nil || string(out) != s {
			t.Errorf("%q came back as %q: %v", s, out, err)
		}
	})
}
