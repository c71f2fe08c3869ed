package link_test

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-gpu/berth/gateway/link"
)

// TestKilledWhileClaiming kills a process that claims one link after another, at an
// arbitrary moment, several times over. What it acknowledged is in the book, and nothing
// else but perhaps the one claim that it was just making.
func TestKilledWhileClaiming(t *testing.T) {
	path := filepath.Join(t.TempDir(), "links.db")
	acknowledged := map[string]bool{}
	for round := range 6 {
		last := killedChild(t, path, round, acknowledged)
		b := openBook(t, path)
		for _, l := range b.List() {
			claimed := l.State == link.Claimed
			switch {
			case claimed != acknowledged[l.ID] && l.ID != last:
				t.Fatalf("round %d: link %s is %s, acknowledged %v", round, l.ID, l.State, acknowledged[l.ID])
			case claimed && l.Grants[0].Guest.Fingerprint != "SHA256:guest of "+l.ID:
				t.Fatalf("round %d: link %s belongs to %s", round, l.ID, l.Grants[0].Guest.Fingerprint)
			}
			acknowledged[l.ID] = claimed // the one in flight may have got through, or not, for good
		}
		for id, yes := range acknowledged {
			if _, ok := b.Get(id); yes && !ok {
				t.Fatalf("round %d: link %s is gone", round, id)
			}
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// killedChild runs TestClaimUntilKilled in a process of its own and kills it once it has
// acknowledged some claims. It adds those and returns the link that was being claimed last.
func killedChild(t *testing.T, path string, round int, acknowledged map[string]bool) (last string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestClaimUntilKilled$", path, fmt.Sprint(round))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := 0
	lines := bufio.NewScanner(out)
	for lines.Scan() { // to the end: what it wrote before it died counts
		verb, id, _ := strings.Cut(lines.Text(), " ")
		switch verb {
		case "try":
			last = id
		case "claimed":
			acknowledged[id] = true
			done++
		default:
			t.Fatalf("the child says %q", lines.Text())
		}
		if done == 10+7*round {
			_ = cmd.Process.Kill() // SIGKILL
		}
	}
	if err := cmd.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Fatalf("the child was not killed: %v", err)
	}
	return last
}

// TestClaimUntilKilled is the child of TestKilledWhileClaiming; without its arguments it
// has nothing to do.
func TestClaimUntilKilled(t *testing.T) {
	if flag.NArg() != 2 {
		return
	}
	b := openBook(t, flag.Arg(0))
	for i := 0; ; i++ {
		id := fmt.Sprintf("r%s-%06d", flag.Arg(1), i)
		h := b.add(id)
		say(t, "try "+id)
		b.claim(h, link.Guest{Key: []byte(id), Fingerprint: "SHA256:guest of " + id})
		say(t, "claimed "+id)
	}
}

func say(t *testing.T, line string) {
	t.Helper()
	if _, err := os.Stdout.WriteString(line + "\n"); err != nil {
		t.Fatal(err)
	}
}
