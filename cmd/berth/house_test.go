package main_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The root of the repository, seen from this package.
const root = "../.."

const module = "github.com/berth-gpu/berth"

// What may lie at the top. A new room is a decision (docs/decisions), not a habit.
var (
	rootFolders = []string{".ci", "cmd", "container", "docs", "gateway", "tui", "tunnel"}
	rootFiles   = []string{
		".gitattributes", ".gitignore", ".golangci.yml", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "Makefile",
		"README.md", "SECURITY.md", "go.mod", "go.sum",
	}
)

// source is one Go file of ours.
type source struct {
	name string // from the root
	dir  string
	test bool // a test, or part of a test kit
	fset *token.FileSet
	file *ast.File
}

// sources parses every Go file below the root but those under testdata.
func sources(t *testing.T) []source {
	t.Helper()
	var list []source
	for _, name := range files(t, ".go") {
		s := source{name: name, dir: path.Dir(name), fset: token.NewFileSet()}
		s.test = strings.HasSuffix(name, "_test.go") || strings.HasSuffix(s.dir, "test")
		file, err := parser.ParseFile(s.fset, filepath.Join(root, name), nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		s.file = file
		list = append(list, s)
	}
	return list
}

// files lists the files with an extension in the folders that are ours, and at the top.
func files(t *testing.T, ext string) []string {
	t.Helper()
	var list []string
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || path.Dir(name) == "." && name != "." && !slices.Contains(rootFolders, name)):
			return fs.SkipDir
		case !d.IsDir() && path.Ext(name) == ext:
			list = append(list, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestHouseTop(t *testing.T) {
	out, err := exec.Command("git", "-C", root, "ls-files", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		t.Skipf("not a git checkout: %v", err)
	}
	for name := range strings.Lines(string(out)) {
		first, _, nested := strings.Cut(strings.TrimSpace(name), "/")
		if nested && !slices.Contains(rootFolders, first) || !nested && !slices.Contains(rootFiles, first) {
			t.Errorf("%s: %s does not belong at the top", strings.TrimSpace(name), first)
		}
	}
}

func TestHousePackageDocs(t *testing.T) {
	docs := map[string]int{}
	for _, s := range sources(t) {
		if strings.HasSuffix(s.name, "_test.go") {
			continue
		}
		docs[s.dir] += 0
		if s.file.Doc != nil {
			docs[s.dir]++
		}
	}
	for dir, n := range docs {
		if n != 1 {
			t.Errorf("%s: %d package docs, want one, in doc.go or in its only file", dir, n)
		}
	}
}

// fence keeps a package out of every folder but those below its home.
type fence struct{ pkg, home string }

var fences = []fence{
	{"github.com/moby/moby", "container"},
	{"github.com/docker/docker", "nowhere"},
	{"github.com/NVIDIA/go-nvml", "container/gpu"},
	{"charm.land/wish", "gateway"},
	{"charm.land/ssh", "gateway"},
	{"charm.land/bubbletea", "tui"},
	{"charm.land/bubbles", "tui"},
}

// rooms names for each room the rooms it may import; cmd/berth may import all.
var rooms = map[string][]string{
	"cmd/berth-agent": {"container/agent"},
	"container/agent": {"container/agent"},
	"container":       {"container"},
	"tunnel":          {"tunnel"},
	"gateway":         {"gateway", "container"},
	"tui":             {"tui", "gateway", "container"},
}

// room is the longest entry of rooms that dir lies in; "" where every import is allowed.
func room(dir string) string {
	for ; dir != "."; dir = path.Dir(dir) {
		if _, ok := rooms[dir]; ok {
			return dir
		}
	}
	return ""
}

func within(name, home string) bool { return name == home || strings.HasPrefix(name, home+"/") }

func TestHouseImports(t *testing.T) {
	for _, s := range sources(t) {
		for _, spec := range s.file.Imports {
			name, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range fences {
				if within(name, f.pkg) && !within(s.dir, f.home) {
					t.Errorf("%s imports %s, which belongs to %s", s.name, name, f.home)
				}
			}
			ours, ok := strings.CutPrefix(name, module+"/")
			from := room(s.dir)
			if !ok || from == "" {
				continue
			}
			if !slices.ContainsFunc(rooms[from], func(home string) bool { return within(ours, home) }) {
				t.Errorf("%s imports %s: from %s imports may go to %v only", s.name, ours, from, rooms[from])
			}
		}
	}
}

func TestHouseLengths(t *testing.T) {
	const fileLines, funcLines = 400, 80
	for _, s := range sources(t) {
		if n := s.fset.File(s.file.Pos()).LineCount(); n > fileLines {
			t.Errorf("%s has %d lines, at most %d: look for its second purpose", s.name, n, fileLines)
		}
		for _, decl := range s.file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			if n := s.fset.Position(f.End()).Line - s.fset.Position(f.Pos()).Line + 1; n > funcLines {
				t.Errorf("%s: %s has %d lines, at most %d", s.name, f.Name.Name, n, funcLines)
			}
		}
	}
}

func TestHouseNoSleepInTests(t *testing.T) {
	for _, s := range sources(t) {
		if !s.test {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			call, ok := n.(*ast.SelectorExpr)
			if !ok || call.Sel.Name != "Sleep" {
				return true
			}
			if id, ok := call.X.(*ast.Ident); ok && id.Name == "time" {
				t.Errorf("%s: poll a condition instead of time.Sleep", s.fset.Position(call.Pos()))
			}
			return true
		})
	}
}

func TestHouseShell(t *testing.T) {
	scripts := append(files(t, ".sh"), ".ci/run", ".ci/release")
	for _, name := range scripts {
		shell := "sh"
		if data, err := os.ReadFile(filepath.Join(root, name)); err != nil {
			t.Error(err)
			continue
		} else if first, _, _ := strings.Cut(string(data), "\n"); strings.HasSuffix(first, "bash") {
			shell = "bash"
		}
		if out, err := exec.Command(shell, "-n", filepath.Join(root, name)).CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", name, err, out)
		}
		if info, err := os.Stat(filepath.Join(root, name)); err == nil && info.Mode()&0o111 == 0 {
			t.Errorf("%s cannot be executed", name)
		}
	}
}

var (
	mdLink    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	mdHeading = regexp.MustCompile(`(?m)^#+ +(.+)$`)
	mdPunct   = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// anchors are the headings of a Markdown file as links name them.
func anchors(text string) []string {
	var list []string
	for _, h := range mdHeading.FindAllStringSubmatch(text, -1) {
		list = append(list, strings.ReplaceAll(mdPunct.ReplaceAllString(strings.ToLower(h[1]), ""), " ", "-"))
	}
	return list
}

func TestHouseLinks(t *testing.T) {
	for _, name := range files(t, ".md") {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range mdLink.FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
				continue
			}
			file, anchor, _ := strings.Cut(m[1], "#")
			target := name
			if file != "" {
				target = path.Join(path.Dir(name), file)
			}
			there, err := os.ReadFile(filepath.Join(root, target))
			if err != nil {
				if info, err := os.Stat(filepath.Join(root, target)); err != nil || !info.IsDir() {
					t.Errorf("%s: link to %s: no such file", name, m[1])
				}
				continue
			}
			if anchor != "" && !slices.Contains(anchors(string(there)), anchor) {
				t.Errorf("%s: link to %s: no such heading", name, m[1])
			}
		}
	}
}

func TestHouseReadme(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), "\n"); n > 200 {
		t.Errorf("README.md has %d lines, at most 200: move what is not needed first into docs", n)
	}
}
