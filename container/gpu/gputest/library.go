package gputest

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// Library builds the simulated NVML, unless it is there, and returns its path. Without a C
// compiler the test is skipped, or fails where REQUIRE names cc.
func Library(tb testing.TB) string {
	tb.Helper()
	if _, err := exec.LookPath("cc"); err != nil {
		if slices.Contains(strings.Split(os.Getenv("REQUIRE"), ","), "cc") {
			tb.Fatalf("a C compiler is required: %v", err)
		}
		tb.Skipf("no C compiler: %v", err)
	}
	path, err := Build()
	if err != nil {
		tb.Fatal(err)
	}
	return path
}

// Build runs `make sim` at the root of the repository and returns the library's path.
func Build() (string, error) {
	_, self, _, _ := runtime.Caller(0)
	root := filepath.Join(filepath.Dir(self), "..", "..", "..")
	out, err := exec.Command("make", "--no-print-directory", "-C", root, "sim").CombinedOutput()
	if err != nil {
		return "", &buildError{err, string(out)}
	}
	return filepath.Join(root, "bin", "sim", "libnvidia-ml.so.1"), nil
}

type buildError struct {
	err error
	out string
}

func (e *buildError) Error() string { return "make sim: " + e.err.Error() + ": " + e.out }
func (e *buildError) Unwrap() error { return e.err }
