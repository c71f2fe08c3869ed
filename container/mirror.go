package container

import (
	"io/fs"
	"slices"
	"strings"
)

// defaultMirror is Debian's own.
const defaultMirror = "http://deb.debian.org/debian"

// mirror finds where this host gets its Debian packages from, so that a host behind a local
// mirror builds from that. etc is /etc/apt; both forms of sources.list(5) are read.
func mirror(etc fs.FS) string {
	names := []string{"sources.list"}
	for _, pattern := range []string{"sources.list.d/*.list", "sources.list.d/*.sources"} {
		found, _ := fs.Glob(etc, pattern)
		names = append(names, found...)
	}
	for _, name := range names {
		data, err := fs.ReadFile(etc, name)
		if err != nil {
			continue
		}
		find := oneLine
		if strings.HasSuffix(name, ".sources") {
			find = deb822
		}
		if uri := find(string(data)); uri != "" {
			return uri
		}
	}
	return defaultMirror
}

// oneLine reads "deb [options] URI SUITE COMPONENT…" lines.
func oneLine(text string) string {
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		f := strings.Fields(line)
		if len(f) < 3 || f[0] != "deb" {
			continue
		}
		f = f[1:]
		if strings.HasPrefix(f[0], "[") {
			end := slices.IndexFunc(f, func(s string) bool { return strings.HasSuffix(s, "]") })
			f = f[end+1:]
		}
		if len(f) >= 3 && f[1] == suite && slices.Contains(f[2:], "main") && web(f[0]) {
			return f[0]
		}
	}
	return ""
}

// deb822 reads stanzas of "Field: value" lines.
func deb822(text string) string {
	for stanza := range strings.SplitSeq(text, "\n\n") {
		fields := map[string][]string{}
		key := ""
		for line := range strings.Lines(stanza) {
			if strings.HasPrefix(line, "#") || strings.TrimSpace(line) == "" {
				continue
			}
			if line[0] != ' ' && line[0] != '\t' {
				name, value, _ := strings.Cut(line, ":")
				key, line = strings.ToLower(name), value
			}
			fields[key] = append(fields[key], strings.Fields(line)...)
		}
		if !slices.Contains(fields["types"], "deb") || !slices.Contains(fields["suites"], suite) ||
			!slices.Contains(fields["components"], "main") || slices.Contains(fields["enabled"], "no") {
			continue
		}
		if i := slices.IndexFunc(fields["uris"], web); i >= 0 {
			return fields["uris"][i]
		}
	}
	return ""
}

// web tells an address that debootstrap can use from apt's own kinds, such as mirror+file.
func web(uri string) bool {
	return strings.HasPrefix(uri, "http://") || strings.HasPrefix(uri, "https://")
}
