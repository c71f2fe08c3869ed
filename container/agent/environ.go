package agent

import (
	"os"
	"path"
	"strings"
)

// BinDir is where the container sees the agent and its other names (berth, scp).
const BinDir = "/.berth/bin"

// defaultPath is what a child gets where the image sets no PATH, as sshd's default.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// environ is a child's environment: the image's, then what a login sets, then the guest's.
func (s *server) environ(st *Start) []string {
	env := newEnv(os.Environ()) //nolint:forbidigo // PID 1's environment is the image's ENV, which is what we pass on
	env.set("PATH", s.path())
	env.set("HOME", s.config.Home)
	env.set("USER", s.config.User)
	env.set("LOGNAME", s.config.User)
	if len(s.shell) > 0 {
		env.set("SHELL", s.shell[0])
	}
	if env.get("LANG") == "" && env.get("LC_ALL") == "" {
		env.set("LANG", "C.UTF-8")
	}
	for _, kv := range st.Env {
		if k, v, ok := strings.Cut(kv, "="); ok {
			env.set(k, v)
		}
	}
	if st.Mode == ModeTerminal {
		env.set("TERM", knownTerm(st.Term, s.config.Home))
	}
	return env.list()
}

// path is the image's PATH with our own programs last, so that the image's win.
func (s *server) path() string {
	p := os.Getenv("PATH") //nolint:forbidigo // PID 1's environment is the image's ENV, which is what we pass on
	if p == "" {
		p = defaultPath
	}
	return p + ":" + BinDir
}

// env keeps the order of an environment while replacing values.
type env struct {
	keys   []string
	values map[string]string
}

func newEnv(list []string) *env {
	e := &env{values: make(map[string]string)}
	for _, kv := range list {
		if k, v, ok := strings.Cut(kv, "="); ok {
			e.set(k, v)
		}
	}
	return e
}

func (e *env) get(k string) string { return e.values[k] }

func (e *env) set(k, v string) {
	if _, ok := e.values[k]; !ok {
		e.keys = append(e.keys, k)
	}
	e.values[k] = v
}

func (e *env) list() []string {
	out := make([]string, len(e.keys))
	for i, k := range e.keys {
		out[i] = k + "=" + e.values[k]
	}
	return out
}

// terminfoDirs are where images keep their terminal descriptions, term(5) and Debian's own.
var terminfoDirs = []string{"/etc/terminfo", "/lib/terminfo", "/usr/share/terminfo", "/usr/lib/terminfo", "/usr/share/lib/terminfo"}

// knownTerm returns term if the image describes it, else the best that it does. Newer
// terminals (kitty, ghostty) are missing from slim images, and every full-screen program
// fails on an unknown name.
func knownTerm(term, home string) string {
	for _, t := range []string{term, "xterm-256color", "xterm", "linux", "vt100"} {
		if t != "" && !strings.ContainsAny(t, "/\x00") && hasTerminfo(t, home) {
			return t
		}
	}
	if term == "" || term == "dumb" {
		return "dumb"
	}
	return "xterm-256color" // an image without terminfo: programs that bring their own know this one
}

func hasTerminfo(term, home string) bool {
	dirs := append([]string{path.Join(home, ".terminfo")}, terminfoDirs...)
	for _, dir := range dirs {
		// ncurses files an entry under its first letter, or that letter in hexadecimal.
		for _, sub := range []string{term[:1], hex(term[0])} {
			if _, err := os.Stat(path.Join(dir, sub, term)); err == nil {
				return true
			}
		}
	}
	return false
}

func hex(b byte) string {
	const digits = "0123456789abcdef"
	return string([]byte{digits[b>>4], digits[b&15]})
}
