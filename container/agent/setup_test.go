package agent

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestCopySkel(t *testing.T) {
	skel, home := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(skel, ".bashrc"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/shadow", filepath.Join(skel, "link")); err != nil {
		t.Fatal(err)
	}
	if err := copySkel(filepath.Join(skel, "none"), home); err != nil {
		t.Errorf("image without a template: %v", err)
	}
	if err := copySkel(skel, home); err != nil {
		t.Fatal(err)
	}
	list, err := os.ReadDir(home)
	if err != nil || len(list) != 1 || list[0].Name() != ".bashrc" {
		t.Errorf("home: %v, %v", list, err)
	}
	if err := os.WriteFile(filepath.Join(home, ".bashrc"), []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := copySkel(skel, home); err != nil {
		t.Fatal(err)
	}
	if data, _ := os.ReadFile(filepath.Join(home, ".bashrc")); string(data) != "mine" {
		t.Errorf("a home in use was changed: %s", data)
	}
}

func TestChownTreeStopsAtMountsAndLinks(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("changing owners needs root")
	}
	home, outside := t.TempDir(), t.TempDir()
	for _, name := range []string{filepath.Join(home, "a", "b"), filepath.Join(home, "mnt", "c"), outside} {
		if err := os.MkdirAll(name, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(name, "f"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(outside, filepath.Join(home, "link")); err != nil {
		t.Fatal(err)
	}
	if err := chownTree(home, owners{1234, 1235, []string{filepath.Join(home, "mnt")}}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{
		home: 0, filepath.Join(home, "a"): 1234, filepath.Join(home, "a", "b", "f"): 1234, filepath.Join(home, "link"): 1234,
		filepath.Join(home, "mnt"): 0, filepath.Join(home, "mnt", "c", "f"): 0, outside: 0, filepath.Join(outside, "f"): 0,
	} {
		if got, err := ownerOf(name); err != nil || got != want {
			t.Errorf("%s: owner %d, %v, want %d", name, got, err, want)
		}
	}
}

func TestUnescape(t *testing.T) {
	for in, want := range map[string]string{
		`/a`: "/a", `/a\040b`: "/a b", `/\134x`: `/\x`, `/a\04`: `/a\04`, `/\999`: `/\999`, ``: "",
	} {
		if got := unescape(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestMountPoints(t *testing.T) {
	list, err := mountPoints()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, m := range list {
		found[m] = true
	}
	if !found["/"] || !found["/proc"] {
		t.Errorf("got %v", list)
	}
}

func TestCapMasks(t *testing.T) {
	if got := capMasks(rootCaps); got != [2]uint32{0x4fb, 0} {
		t.Errorf("root's: got %x", got)
	}
	if got := capMasks([]int{unix.CAP_CHOWN, unix.CAP_BPF}); got != [2]uint32{1, 1 << (unix.CAP_BPF - 32)} {
		t.Errorf("high ones: got %x", got)
	}
}

func TestLoadConfig(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.json")
	if _, err := LoadConfig(file); err == nil {
		t.Error("no error for a file that is not there")
	}
	if err := os.WriteFile(file, []byte(`{"user":"guest","uid":1000,"network":"lan","resolvers":["9.9.9.9"],"refuse":["10.0.0.1/32"]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := LoadConfig(file)
	if err != nil || c.User != "guest" || c.UID != 1000 {
		t.Errorf("got %+v, %v", c, err)
	}
	if l, err := LoadLimits(file); err != nil || len(l.Resolvers) != 1 || l.Refuse[0].Bits() != 32 {
		t.Errorf("got %+v, %v", l, err)
	}
	if err := os.WriteFile(file, []byte(`{"uid":"x"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadConfig(file); err == nil {
		t.Error("no error for a broken file")
	}
}
