package gpu_test

import (
	"path/filepath"
	"testing"

	"github.com/berth-gpu/berth/container/gpu"
	"github.com/berth-gpu/berth/container/gpu/gputest"
)

func TestFake(t *testing.T) {
	var f gputest.Fake
	gputest.Suite(t, &f, f.Set)
}

func TestSimulatedNVML(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.json")
	t.Setenv("BERTH_NVML_SIM", path)
	library := gpu.NVML(gputest.Library(t))
	gputest.Suite(t, library, func(s gputest.State) { s.Write(t, path) })
}

func TestNoLibrary(t *testing.T) {
	if _, err := gpu.NVML("/nowhere/libnvidia-ml.so.1").Open(); err == nil {
		t.Error("a library that is not there was opened")
	}
}
