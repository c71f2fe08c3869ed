package container

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/moby/moby/api/types/jsonstream"
)

func TestOpen(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	one, err := Open(Options{Dir: dir, Agent: []byte("one")})
	if err != nil {
		t.Fatal(err)
	}
	two, err := Open(Options{Dir: dir, Agent: []byte("two")})
	if err != nil {
		t.Fatal(err)
	}
	if one.State() == "" || one.State() != two.State() {
		t.Errorf("state ids %q and %q", one.State(), two.State())
	}
	if one.bin == two.bin {
		t.Error("two agents share a directory")
	}
	for _, e := range []*Engine{one, two} {
		info, err := os.Stat(filepath.Join(e.bin, agentName))
		if err != nil || info.Mode() != 0o755 {
			t.Errorf("agent: %v, %v", info, err)
		}
		for _, name := range []string{"berth", "scp"} {
			if to, err := os.Readlink(filepath.Join(e.bin, name)); err != nil || to != agentName {
				t.Errorf("%s: %q, %v", name, to, err)
			}
		}
	}
	if info, err := os.Stat(dir); err != nil || info.Mode() != fs.ModeDir|0o700 {
		t.Errorf("state directory: %v, %v", info.Mode(), err)
	}
	if got := one.RunDir("abc"); got != filepath.Join(dir, "run", "abc") {
		t.Errorf("run directory: %s", got)
	}
}

func TestAgentIsRepaired(t *testing.T) {
	dir := t.TempDir()
	bin, err := installAgent(dir, []byte("agent"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(bin, agentName), []byte("half"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(bin, "scp")); err != nil {
		t.Fatal(err)
	}
	if again, err := installAgent(dir, []byte("agent")); err != nil || again != bin {
		t.Fatalf("%s, %v", again, err)
	}
	if data, _ := os.ReadFile(filepath.Join(bin, "scp")); string(data) != "agent" {
		t.Errorf("got %q", data)
	}
}

func TestLockIsForOneLink(t *testing.T) {
	e := &Engine{links: map[string]*linkLock{}}
	n := 0
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			defer e.lock("a")()
			n++
		})
	}
	wg.Wait()
	if n != 50 {
		t.Errorf("n is %d", n)
	}
	unlock := e.lock("a")
	e.lock("b")() // does not wait for a
	unlock()
	if len(e.links) != 0 {
		t.Errorf("left: %v", e.links)
	}
}

func TestProgress(t *testing.T) {
	now := time.Unix(1e9, 0)
	var said []string
	p := progress{now: func() time.Time { return now }, say: func(l string) { said = append(said, l) }}
	for i, m := range []jsonstream.Message{
		{Status: "Pulling from library/x"},
		{ID: "a", Status: "Downloading", Progress: &jsonstream.Progress{Current: 1 << 20, Total: 4 << 20}},
		{ID: "b", Status: "Downloading", Progress: &jsonstream.Progress{Current: 2 << 20, Total: 4 << 20}},
		{ID: "a", Status: "Download complete"},
		{ID: "a", Status: "Extracting", Progress: &jsonstream.Progress{Current: 1, Total: 9}},
	} {
		p.message(m)
		now = now.Add(time.Duration(i) * time.Second)
	}
	want := "pulling from library/x\ndownload complete, 6MiB of 8MiB\nextracting, 6MiB of 8MiB"
	if got := strings.Join(said, "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestFollowKeepsTheError(t *testing.T) {
	b := build{say: func(string) {}, now: time.Now}
	got := b.follow(strings.NewReader("I: one\nE: Failed getting release file\nI: cleaning\n" + strings.Repeat("x", 1<<17)))
	if got != "E: Failed getting release file" {
		t.Errorf("got %q", got)
	}
}
