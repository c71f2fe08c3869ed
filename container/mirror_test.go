package container

import (
	"testing"
	"testing/fstest"
)

func TestMirror(t *testing.T) {
	for _, c := range []struct{ name, file, text, want string }{
		{"none", "", "", defaultMirror},
		{"one line", "sources.list", "# deb http://no/ bookworm main\ndeb-src http://no/ bookworm main\ndeb http://near/debian bookworm main contrib\n", "http://near/debian"},
		{"options", "sources.list", "deb [ arch=amd64 signed-by=/k ] https://near/debian bookworm main\n", "https://near/debian"},
		{"another suite", "sources.list", "deb http://near/debian trixie main\n", defaultMirror},
		{"security only", "sources.list", "deb http://near/security bookworm-security main\n", defaultMirror},
		{"list.d", "sources.list.d/x.list", "deb http://near/debian bookworm main\n", "http://near/debian"},
		{"not main", "sources.list.d/x.list", "deb http://near/x bookworm contrib\n", defaultMirror},
		{"deb822", "sources.list.d/debian.sources", "# c\nTypes: deb deb-src\nURIs: http://near/debian\nSuites: bookworm bookworm-updates\nComponents: main\n", "http://near/debian"},
		{"deb822, second stanza", "sources.list.d/d.sources", "Types: deb\nURIs: http://sec/\nSuites: bookworm-security\nComponents: main\n\nTypes: deb\nURIs:\n mirror+file:/x\n http://near/debian\nSuites: bookworm\nComponents: main\n", "http://near/debian"},
		{"deb822, off", "sources.list.d/d.sources", "Enabled: no\nTypes: deb\nURIs: http://near/\nSuites: bookworm\nComponents: main\n", defaultMirror},
	} {
		t.Run(c.name, func(t *testing.T) {
			etc := fstest.MapFS{}
			if c.file != "" {
				etc[c.file] = &fstest.MapFile{Data: []byte(c.text)}
			}
			if got := mirror(etc); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}
