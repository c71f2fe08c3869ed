//go:build linux && cgo

package gpu

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// library is NVML, by go-nvml. A function that the installed library lacks must never be
// called: it is bound at its first call, and the dynamic linker would end the program.
type library struct {
	api nvml.Interface

	mu     sync.Mutex // guards what is below; held while the library is loaded, not during other calls
	open   bool
	driver Driver
	lacks  map[string]bool // functions of needed that are not there
	events nvml.EventSet
	known  map[nvml.Device]string // UUIDs of the cards that events watches
	count  int                    // of them
}

// needed are all functions of NVML that are called here, by the names that go-nvml binds.
var needed = []string{
	"nvmlInit_v2", "nvmlSystemGetDriverVersion", "nvmlSystemGetCudaDriverVersion_v2",
	"nvmlDeviceGetCount_v2", "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetName", "nvmlDeviceGetUUID",
	"nvmlDeviceGetMinorNumber", "nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetMemoryInfo", "nvmlDeviceGetUtilizationRates",
	"nvmlDeviceGetTemperature", "nvmlDeviceGetTemperatureThreshold", "nvmlDeviceGetPowerUsage", "nvmlDeviceGetEnforcedPowerLimit",
	"nvmlDeviceGetTotalEnergyConsumption", "nvmlDeviceGetFanSpeed", "nvmlDeviceGetClockInfo", "nvmlDeviceGetTotalEccErrors",
	"nvmlDeviceGetMigMode", "nvmlDeviceGetMaxMigDeviceCount", "nvmlDeviceGetMigDeviceHandleByIndex", "nvmlDeviceGetGpuInstanceId",
	"nvmlDeviceGetComputeInstanceId", "nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetGraphicsRunningProcesses_v3",
	"nvmlDeviceGetMPSComputeRunningProcesses_v3", "nvmlDeviceGetProcessUtilization", "nvmlEventSetCreate", "nvmlEventSetFree",
	"nvmlEventSetWait_v2", "nvmlDeviceRegisterEvents",
}

// essential are those without which nothing can be said about a card: an NVML from before 2018
// lacks some.
var essential = []string{"nvmlInit_v2", "nvmlDeviceGetCount_v2", "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetUUID"}

// NVML returns the driver behind the library at path; the system's own where path is empty.
func NVML(path string) Library {
	var opts []nvml.LibraryOption
	if path != "" {
		opts = append(opts, nvml.WithLibraryPath(path))
	}
	return &library{api: nvml.New(opts...), lacks: map[string]bool{}, known: map[nvml.Device]string{}}
}

// Open loads the library and starts the driver's side of it.
func (l *library) Open() (Driver, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open {
		return l.driver, nil
	}
	switch ret := l.api.Init(); ret {
	case nvml.SUCCESS:
	case nvml.ERROR_LIBRARY_NOT_FOUND:
		return Driver{}, fmt.Errorf("%w: libnvidia-ml.so.1 cannot be loaded%s", ErrNoDriver, board())
	case nvml.ERROR_DRIVER_NOT_LOADED:
		return Driver{}, fmt.Errorf("%w: its kernel module is not loaded", ErrNoDriver)
	default:
		return Driver{}, fmt.Errorf("start NVML: %w", class(ret))
	}
	for _, name := range needed {
		if l.api.Extensions().LookupSymbol(name) != nil {
			l.lacks[name] = true
		}
	}
	for _, name := range essential {
		if l.lacks[name] {
			return Driver{}, fmt.Errorf("start NVML: the library has no %s: the driver is too old", name)
		}
	}
	l.open, l.driver = true, l.describe()
	return l.driver, nil
}

// describe says what is installed.
func (l *library) describe() Driver {
	d := Driver{Simulated: l.api.Extensions().LookupSymbol("berthSimulated") == nil}
	if !l.lacks["nvmlSystemGetDriverVersion"] {
		d.Version, _ = l.api.SystemGetDriverVersion()
	}
	if !l.lacks["nvmlSystemGetCudaDriverVersion_v2"] {
		if v, ret := l.api.SystemGetCudaDriverVersion_v2(); ret == nvml.SUCCESS {
			d.CUDA = fmt.Sprintf("%d.%d", v/1000, v%1000/10)
		}
	}
	if b := board(); b != "" {
		d.Note = strings.TrimPrefix(b, "; ")
	}
	return d
}

// board says that this is a Jetson, whose GPU is no PCI device and which NVML hands out no
// handle for.
func board() string {
	if _, err := os.Stat("/etc/nv_tegra_release"); err == nil {
		return "; this is a Jetson, whose GPU NVML does not manage"
	}
	return ""
}

// Count asks how many cards there are.
func (l *library) Count() (int, error) {
	n, ret := l.api.DeviceGetCount()
	return n, class(ret)
}

// class turns NVML's answer into an error of ours.
func class(ret nvml.Return) error {
	switch ret {
	case nvml.SUCCESS:
		return nil
	case nvml.ERROR_GPU_IS_LOST, nvml.ERROR_RESET_REQUIRED:
		return fmt.Errorf("%w: %s", ErrLost, text(ret))
	case nvml.ERROR_TIMEOUT:
		return ErrTimeout
	case nvml.ERROR_NO_PERMISSION:
		return ErrForbidden
	case nvml.ERROR_DRIVER_NOT_LOADED:
		return fmt.Errorf("%w: its kernel module is not loaded", ErrNoDriver)
	default:
		return errors.New(text(ret))
	}
}

// text names what people meet. The library's own words would do, were it not that asking it for
// them is one more call into a driver that may be gone.
func text(ret nvml.Return) string {
	names := map[nvml.Return]string{
		nvml.ERROR_UNINITIALIZED: "NVML is not started", nvml.ERROR_NOT_SUPPORTED: "not supported", nvml.ERROR_NOT_FOUND: "not found",
		nvml.ERROR_GPU_IS_LOST: "it fell off the bus", nvml.ERROR_RESET_REQUIRED: "it needs a reset",
		nvml.ERROR_LIB_RM_VERSION_MISMATCH: "the driver was updated and the machine not restarted", nvml.ERROR_UNKNOWN: "unknown error",
	}
	if name, ok := names[ret]; ok {
		return name
	}
	return fmt.Sprintf("NVML error %d", int32(ret))
}

// has reports whether all these functions can be called.
func (l *library) has(names ...string) bool {
	return !slices.ContainsFunc(names, func(n string) bool { return l.lacks[n] })
}
