//go:build peers

package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// What a run of TestPeers may be told; `make bench-peers` sets out.
var (
	peersQuick = flag.Bool("peers-quick", false, "small sizes and few runs: to try, not to quote")
	peersOnly  = flag.String("peers-only", "", "only the measures with this in their name")
	peersOut   = flag.String("peers-out", "", "directory for the table")
)

// bench is one comparison: two sides, and the files that both move.
type bench struct {
	dir    string
	config string // ssh_config with the hosts berth and sshd
	quick  bool
}

// measure is one row of the table.
type measure struct {
	name, unit  string
	runs, quick int
	goal        goal
	do          func(b *bench, s *side) (float64, error)
}

// runsNow is how often a measure is taken on each side.
func (m *measure) runsNow(quick bool) int {
	if quick {
		return m.quick
	}
	return m.runs
}

// size is n bytes, or a small part of it in a quick run.
func (b *bench) size(n int64) int64 {
	if b.quick {
		return n / 8
	}
	return n
}

// TestPeers measures Berth beside OpenSSH's own server in an identical container. Both are
// driven by the same OpenSSH client with its default choices. The runs of a measure take
// turns, so that whatever else the machine does meets both.
func TestPeers(t *testing.T) {
	b := &bench{dir: t.TempDir(), quick: *peersQuick}
	b.prepare(t)
	berth, sshd := b.startBerth(t), b.startSSHD(t)
	b.writeConfig(t, berth, sshd)
	tab := &table{head: b.machine(), before: loadNow()}
	for _, m := range measures() {
		if !strings.Contains(m.name, *peersOnly) {
			continue
		}
		row := b.take(t, &m, berth, sshd)
		t.Log(row.line())
		tab.rows = append(tab.rows, row)
	}
	tab.after = loadNow()
	text := tab.String()
	fmt.Println(text)
	if *peersOut == "" || b.quick { // what is only tried is not kept
		return
	}
	name := filepath.Join(*peersOut, "peers-"+time.Now().Format(time.DateOnly)+".txt")
	if err := os.MkdirAll(*peersOut, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// take runs one measure on both sides in turns and returns the medians.
func (b *bench) take(t *testing.T, m *measure, berth, sshd *side) row {
	t.Helper()
	var got [2][]float64
	for i := range m.runsNow(b.quick) {
		for j := range 2 {
			which := (i + j) % 2 // who begins changes too
			s := []*side{berth, sshd}[which]
			v, err := m.do(b, s)
			if err != nil {
				t.Fatalf("%s, %s: %v", m.name, s.name, err)
			}
			got[which] = append(got[which], v)
		}
	}
	return row{measure: m, berth: median(got[0]), sshd: median(got[1])}
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	if n := len(v); n%2 == 0 {
		return (v[n/2-1] + v[n/2]) / 2
	}
	return v[len(v)/2]
}

// prepare makes what is copied: a large file, 2,000 small ones, and a key.
func (b *bench) prepare(t *testing.T) {
	t.Helper()
	b.config = filepath.Join(b.dir, "config")
	b.run(t, "ssh-keygen", "-qt", "ed25519", "-N", "", "-f", filepath.Join(b.dir, "key"))
	// Sparse: reading it costs the client nothing but the copy.
	for name, size := range map[string]int64{"stream": b.size(1 << 30), "big": b.size(512 << 20)} {
		f, err := os.Create(filepath.Join(b.dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Truncate(size); err != nil {
			t.Fatal(err)
		}
		_ = f.Close()
	}
	many := filepath.Join(b.dir, "many")
	if err := os.Mkdir(many, 0o755); err != nil {
		t.Fatal(err)
	}
	for i := range b.size(2000) {
		if err := os.WriteFile(filepath.Join(many, fmt.Sprint("file", i)), make([]byte, 4096), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// run runs a command that has to succeed.
func (b *bench) run(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", name, err, out)
	}
	return strings.TrimSpace(string(out))
}

// machine describes what this ran on.
func (b *bench) machine() string {
	out := func(name string, args ...string) string {
		text, _ := exec.Command(name, args...).CombinedOutput()
		return strings.TrimSpace(strings.SplitN(string(text), "\n", 2)[0])
	}
	kind := ""
	if b.quick {
		kind = "; quick: an eighth of the size, few runs"
	}
	return fmt.Sprintf("%s, %s, %s processors, Docker %s, client %s%s", time.Now().Format(time.DateOnly), out("uname", "-srm"), out("nproc"),
		out("docker", "version", "--format", "{{.Server.Version}}"), out("ssh", "-V"), kind)
}

func loadNow() string {
	text, _ := os.ReadFile("/proc/loadavg")
	return strings.SplitN(string(text), " ", 2)[0]
}
