package screen_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/berth-gpu/berth/container/agent/screen"
)

func feed(cols, rows int, text ...string) *screen.Screen {
	s := screen.New(cols, rows)
	for _, t := range text {
		_, _ = s.Write([]byte(t))
	}
	return s
}

// picture is the screen as text, with the cursor's place.
func picture(s *screen.Screen) string {
	v := s.View()
	return fmt.Sprintf("%s\n@%d,%d", strings.TrimRight(strings.Join(v.Lines, "\n"), "\n"), v.X, v.Y)
}

func TestWrite(t *testing.T) {
	for name, tc := range map[string]struct{ in, want string }{
		"lines":                  {"one\r\ntwo", "one\ntwo\n@3,1"},
		"wrap at the margin":     {"0123456789ab", "0123456789\nab\n@2,1"},
		"last column waits":      {"0123456789", "0123456789\n@9,0"},
		"last column, then home": {"0123456789\rX", "X123456789\n@1,0"},
		"no wrap":                {"\x1b[?7l0123456789abc", "012345678c\n@9,0"},
		"scroll":                 {"1\r\n2\r\n3\r\n4\r\n5", "2\n3\n4\n5\n@1,3"},
		"region":                 {"1\r\n2\r\n3\r\n4\x1b[2;3r\x1b[3H\nX", "1\n3\nX\n4\n@1,2"},
		"reverse index":          {"1\r\n2\x1b[H\x1bMtop", "top\n1\n2\n@3,0"},
		"erase to the end":       {"abcdef\x1b[3D\x1b[K", "abc\n@3,0"},
		"erase before":           {"abcdef\x1b[3D\x1b[1K", "    ef\n@3,0"},
		"erase display":          {"a\r\nb\x1b[2J", "\n@1,1"},
		"insert and delete":      {"abcdef\x1b[1;3H\x1b[2@\x1b[1;1H\x1b[P", "b  cdef\n@0,0"},
		"insert lines":           {"1\r\n2\r\n3\x1b[2H\x1b[L", "1\n\n2\n3\n@0,1"},
		"delete lines":           {"1\r\n2\r\n3\x1b[1H\x1b[M", "2\n3\n@0,0"},
		"insert mode":            {"abc\x1b[4h\x1b[1;1HX", "Xabc\n@1,0"},
		"tabs":                   {"a\tb", "a       b\n@9,0"},
		"repeat":                 {"a\x1b[3b", "aaaa\n@4,0"},
		"wide":                   {"漢字", "漢字\n@4,0"},
		"wide at the margin":     {"012345678漢", "012345678\n漢\n@2,1"},
		"half of wide replaced":  {"漢\x1b[1;2Hx", " x\n@2,0"},
		"combining":              {"e\u0301x", "e\u0301x\n@2,0"},
		"line drawing":           {"\x1b(0lqk\x1b(Bq", "┌─┐q\n@4,0"},
		"colours":                {"\x1b[31;1mr\x1b[0mn\x1b[48;2;1;2;3mb", "\x1b[0;1;31mr\x1b[0mn\x1b[0;48;2;1;2;3mb\x1b[0m\n@3,0"},
		"colours with colons":    {"\x1b[38:2::1:2:3ma\x1b[38:5:9mb\x1b[4:3mc", "\x1b[0;38;2;1;2;3ma\x1b[0;91mb\x1b[0;4:3;91mc\x1b[0m\n@3,0"},
		"save and restore":       {"ab\x1b7\x1b[3;3H\x1b[1mX\x1b8c", "abc\n\n  \x1b[0;1mX\x1b[0m\n@3,0"},
		"alternate screen":       {"shell\x1b[?1049h\x1b[Hvim", "vim\n@3,0"},
		"back from it":           {"shell\x1b[?1049h\x1b[Hvim\x1b[?1049l!", "shell!\n@6,0"},
		"title is no text":       {"\x1b]2;title\x07a", "a\n@1,0"},
		"unknown is skipped":     {"\x1b[?9999h\x1bP+q00\x1b\\\x1b_x\x1b\\a", "a\n@1,0"},
		"latin-1":                {"caf\xe9 x", "caf\ufffd x\n@6,0"},
		"C1 as UTF-8":            {"a\u009b31mb", "a31mb\n@5,0"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := picture(feed(10, 4, tc.in)); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			slow := screen.New(10, 4)
			for i := range len(tc.in) {
				_, _ = slow.Write([]byte{tc.in[i]})
			}
			if got := picture(slow); got != tc.want {
				t.Errorf("byte by byte: got %q, want %q", got, tc.want)
			}
		})
	}
}

// state is everything that a Redraw carries over, as the bytes of one.
func state(s *screen.Screen) string { return string(s.Redraw(screen.RedrawOptions{})) }

// checkRedraw has a terminal that showed something else brought to the state of s.
func checkRedraw(t *testing.T, s *screen.Screen, history, exact bool) {
	t.Helper()
	cols, rows := s.Size()
	other := feed(cols, rows, "\x1b[?1000h\x1b[31mnoise\x1b[3;9r\x1b[?6h\x1b[4h\x1b(0")
	_, _ = other.Write(s.Redraw(screen.RedrawOptions{History: history}))
	if got, want := picture(other), picture(s); got != want {
		t.Errorf("the picture differs:\n%q\n%q", got, want)
	}
	if got, want := state(other), state(s); exact && got != want {
		t.Errorf("the state differs:\n%q\n%q", got, want)
	}
	// what follows must look the same too
	const more = "more\x1b8saved\x1b[Hhome\n\x1b[?1049lback"
	_, _ = other.Write([]byte(more))
	after := screen.New(cols, rows)
	_, _ = after.Write(s.Redraw(screen.RedrawOptions{}))
	_, _ = after.Write([]byte(more))
	if got, want := picture(other), picture(after); got != want {
		t.Errorf("what follows differs:\n%q\n%q", got, want)
	}
}

func TestRedraw(t *testing.T) {
	for name, in := range map[string]string{
		"empty":           "",
		"shell":           "$ ls\r\nfile\r\n$ ",
		"scrolled":        strings.Repeat("line\r\n", 50) + "$ ",
		"colours":         "\x1b[1;38;5;200;44mhi\x1b[4:3;58;2;1;2;3munder\x1b[mplain\x1b[7m",
		"full-screen":     "$ vim\r\n\x1b[?1049h\x1b[?1h\x1b=\x1b[2;9r\x1b[?25l\x1b[?2004h\x1b[?1002h\x1b[?1006h\x1b]2;vim\x07\x1b[Hbody\x1b[10;1H\x1b[7mstatus\x1b[m\x1b[5;5H",
		"about to wrap":   strings.Repeat("x", 40),
		"wide at the end": strings.Repeat("x", 38) + "漢",
		"saved":           "\x1b[2;3H\x1b[32m\x1b7\x1b[m\x1b[H",
		"origin":          "\x1b[3;8r\x1b[?6h\x1b[2;2Hx",
		"link":            "\x1b]8;id=1;http://example.org\x1b\\text\x1b]8;;\x1b\\ plain",
		"cursor shape":    "\x1b[4 q",
		"keyboard":        "\x1b[>1u\x1b[>5u\x1b[>4;2m",
		"palette":         "\x1b]4;1;#123456\x07\x1b]11;#000000\x07",
		"insert, no wrap": "abc\x1b[4h\x1b[?7l",
		"line drawing":    "\x1b)0\x0eqqq",
		"background":      "\x1b[44m\x1b[2J\x1b[5;5Hblue",
		"clusters":        "e\u0301\u0302 👨\u200d👩 ok",
	} {
		t.Run(name, func(t *testing.T) {
			s := feed(40, 10, in)
			checkRedraw(t, s, false, true)
			checkRedraw(t, s, true, true)
		})
	}
}

// TestRedrawShowsHistory: the guest finds what scrolled off in their terminal's own history.
func TestRedrawShowsHistory(t *testing.T) {
	var in strings.Builder
	for i := range 100 {
		fmt.Fprintf(&in, "line %d\r\n", i)
	}
	s := feed(40, 10, in.String())
	other := feed(40, 10, "their own text")
	_, _ = other.Write(s.Redraw(screen.RedrawOptions{History: true}))
	var want, got []string
	for i := range 91 {
		want = append(want, fmt.Sprintf("line %d", i))
	}
	for _, l := range strings.Split(string(other.History()), "\n") {
		if strings.HasPrefix(l, "line ") {
			got = append(got, l)
		}
	}
	if strings.Join(got, ",") != strings.Join(want, ",") {
		t.Errorf("history is %q", got)
	}
	if !strings.Contains(string(other.History()), "their own text") {
		t.Error("what the terminal showed before is lost")
	}
}

// TestRandomRedraw has random programs draw, and compares after a redraw at each step.
func TestRandomRedraw(t *testing.T) {
	pieces := []string{
		"text ", "longer text that wraps around the margin ", "漢字", "e\u0301", "\r\n", "\n", "\b", "\t", "\x1b[H", "\x1b[5;20H", "\x1b[2J", "\x1b[K", "\x1b[1K",
		"\x1b[3@", "\x1b[2P", "\x1b[4X", "\x1b[L", "\x1b[M", "\x1b[2S", "\x1b[T", "\x1b[3;7r", "\x1b[r", "\x1b7", "\x1b8",
		"\x1b[?1049h", "\x1b[?1049l", "\x1b[31m", "\x1b[1;4;44m", "\x1b[m", "\x1b[38;2;9;8;7m", "\x1b(0", "\x1b(B", "\x0e", "\x0f",
		"\x1b[?7l", "\x1b[?7h", "\x1b[4h", "\x1b[4l", "\x1b[?25l", "\x1b[?2004h", "\x1bM", "\x1bD", "\x1bc", "\x1b[!p", "\x1b#8", "\x1b]2;t\x07", "\x1b[5b",
	}
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		s := screen.New(24, 8)
		for range 30 {
			for range 5 {
				_, _ = s.Write([]byte(pieces[rnd.IntN(len(pieces))]))
			}
			if rnd.IntN(10) == 0 {
				s.Resize(10+rnd.IntN(30), 3+rnd.IntN(10))
			}
			checkRedraw(t, s, rnd.IntN(2) == 0, true)
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		}
	}
}

// TestLeave: a terminal whose connection ends in the middle of a full-screen program is usable.
func TestLeave(t *testing.T) {
	s := feed(40, 10, "$ vim\r\n\x1b[?1049h\x1b[?1h\x1b=\x1b[2;9r\x1b[?6h\x1b[?25l\x1b[?2004h\x1b[?1002h\x1b[4h\x1b[>1u\x1b[>4;2m\x1b[4 q\x1b]11;#000\x07\x1b[7m\x1b(0body")
	_, _ = s.Write(s.Leave())
	_, _ = s.Write([]byte("$ x"))
	want := feed(40, 10, "$ vim\r\n$ x\x1b7\x1b[1;6H\x1b7\x1b[2;4H")
	if got := picture(s); got != "$ vim\n$ x\n@3,1" {
		t.Errorf("the screen is %q", got)
	}
	modes := func(s *screen.Screen) string { _, after, _ := strings.Cut(state(s), "\x1b[?1l"); return after }
	if got := modes(s); got == "" || got != modes(want) {
		t.Errorf("modes are left: %q", got)
	}
}

func TestBounds(t *testing.T) {
	s := feed(1<<20, 1<<20, "\x1b[99999;99999Hx\x1b[99999b", strings.Repeat("\n", 100_000))
	cols, rows := s.Size()
	if cols != screen.MaxCols || rows != screen.MaxRows {
		t.Errorf("size is %d×%d", cols, rows)
	}
	s = screen.New(80, 24)
	for i := range 20_000 {
		fmt.Fprintf(s, "\x1b[38;2;%d;%d;%dm%d e\u0301\u0302\x1b[m\r\n", i&255, i>>8&255, i>>3&255, i)
	}
	if n := len(s.History()); n > screen.HistoryBytes || n < screen.HistoryBytes/2 {
		t.Errorf("history holds %d bytes", n)
	}
	if n := len(s.Redraw(screen.RedrawOptions{})); n > 64<<10 {
		t.Errorf("a redraw takes %d bytes", n)
	}
}

func TestReplies(t *testing.T) {
	s := feed(80, 24, "\x1b[c\x1b[>c\x1b[5n\x1b[3;4H\x1b[6n")
	if got, want := string(s.TakeReply()), "\x1b[?62;22c\x1b[>1;10;0c\x1b[0n\x1b[3;4R"; got != want {
		t.Errorf("replies are %q, want %q", got, want)
	}
	_, _ = s.Write(bytes.Repeat([]byte("\x1b[c"), 1000))
	if n := len(s.TakeReply()); n > 256 {
		t.Errorf("%d bytes of replies were kept", n)
	}
}

// TestPainter keeps terminals of several sizes showing a screen that changes.
func TestPainter(t *testing.T) {
	for _, size := range [][2]int{{24, 8}, {40, 20}, {10, 4}, {24, 3}} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(1, 2))
			s, term := screen.New(24, 8), feed(size[0], size[1], "\x1b[32mown")
			p := screen.Painter{Cols: size[0], Rows: size[1], Input: true}
			for range 200 {
				fmt.Fprintf(s, "\x1b[%d;%dH\x1b[%dm%c漢\x1b[m\x1b[%d;%dH", rnd.IntN(8)+1, rnd.IntN(24)+1, 31+rnd.IntN(6), 'a'+rnd.IntN(26), rnd.IntN(8)+1, rnd.IntN(24)+1)
				v := s.View()
				_, _ = term.Write(p.Paint(v))
				got := term.View()
				if size[0] >= 24 && size[1] >= 8 && (strings.Join(got.Lines[:8], "\n") != strings.Join(v.Lines, "\n") || got.X != v.X || got.Y != v.Y) {
					t.Fatalf("shows %q, want %q", got.Lines, v.Lines)
				}
			}
			_, _ = term.Write(p.Leave())
			if got := picture(term); got != "\x1b[0;32mown\x1b[0m\n@3,0" {
				t.Errorf("left behind: %q", got)
			}
		})
	}
}

func FuzzWrite(f *testing.F) {
	f.Add([]byte("\x1b[?1049h\x1b[38;5;1mhi\x1b]2;t\x07\x1b[3;4r\x1bM"), uint16(80), uint16(24))
	f.Add([]byte("\xe6\xbc\xa2\x1b[2@\x1b[9999b\x1b[4h\xe6\xbc"), uint16(2), uint16(1))
	f.Fuzz(func(t *testing.T, in []byte, cols, rows uint16) {
		s := screen.New(int(cols%200), int(rows%60))
		half := len(in) / 2
		_, _ = s.Write(in[:half])
		s.Resize(int(rows%200), int(cols%60))
		_, _ = s.Write(in[half:])
		if s.Broken() > 0 {
			t.Fatal("the model panicked")
		}
		for y, l := range s.View().Lines {
			if i := strings.IndexFunc(l, func(r rune) bool { return r < ' ' && r != 0x1b || r >= 0x7f && r < 0xa0 }); i >= 0 {
				t.Fatalf("line %d holds a control character: %q", y, l)
			}
		}
		other := feed(s.View().Cols, s.View().Rows)
		_, _ = other.Write(s.Redraw(screen.RedrawOptions{History: true}))
		if got, want := picture(other), picture(s); got != want {
			t.Fatalf("redrawn %q, want %q", got, want)
		}
	})
}

func BenchmarkWrite(b *testing.B) {
	for name, line := range map[string]string{
		"text":    strings.Repeat("hello world 12345 ", 4) + "\r\n",
		"colours": strings.Repeat("\x1b[31mhello\x1b[0m \x1b[1;44mworld\x1b[m ", 4) + "\r\n",
		"wide":    strings.Repeat("漢字かな ", 8) + "\r\n",
	} {
		b.Run(name, func(b *testing.B) {
			buf := bytes.Repeat([]byte(line), 64<<10/len(line))
			s := screen.New(200, 50)
			b.SetBytes(int64(len(buf)))
			for b.Loop() {
				_, _ = s.Write(buf)
			}
		})
	}
}
