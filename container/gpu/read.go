//go:build linux && cgo

package gpu

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// Read asks everything about one card. What it does not support stays nil.
func (l *library) Read(index int) (Card, error) {
	c := Card{Index: index, Minor: -1, State: OK, Processes: []Process{}}
	d, ret := l.api.DeviceGetHandleByIndex(index)
	if ret != nvml.SUCCESS {
		return c, fmt.Errorf("open card: %w", class(ret))
	}
	r := reading{library: l, device: d}
	c.UUID = get(&r, "nvmlDeviceGetUUID", d.GetUUID)
	c.Name = get(&r, "nvmlDeviceGetName", d.GetName)
	if pci, ok := maybe(&r, "nvmlDeviceGetPciInfo_v3", d.GetPciInfo); ok {
		c.PCI = busID(pci)
	}
	if n, ok := maybe(&r, "nvmlDeviceGetMinorNumber", d.GetMinorNumber); ok {
		c.Minor = n
	}
	c.Memory = r.memory(d)
	r.sensors(&c)
	r.slices(&c)
	r.processes(&c)
	if c.UUID == "" && r.lost == nil {
		return c, errors.New("read card: it has no UUID")
	}
	return c, r.lost
}

// reading is one look at one card. After the card was found lost nothing more is asked.
type reading struct {
	*library
	device nvml.Device
	lost   error
}

// maybe calls one function, if the library has it and the card is still there.
func maybe[T any](r *reading, name string, call func() (T, nvml.Return)) (T, bool) {
	var none T
	if r.lost != nil || !r.has(name) {
		return none, false
	}
	v, ret := call()
	if err := class(ret); errors.Is(err, ErrLost) {
		r.lost = fmt.Errorf("read card: %w", err)
	}
	if ret != nvml.SUCCESS {
		return none, false
	}
	return v, true
}

func get[T any](r *reading, name string, call func() (T, nvml.Return)) T {
	v, _ := maybe(r, name, call)
	return v
}

// number is maybe for what is shown as a nil number where it is not known.
func number[T uint32 | int](r *reading, name string, call func() (T, nvml.Return)) *int {
	v, ok := maybe(r, name, call)
	if !ok {
		return nil
	}
	n := int(v)
	return &n
}

func (r *reading) memory(d nvml.Device) Memory {
	m, ok := maybe(r, "nvmlDeviceGetMemoryInfo", d.GetMemoryInfo)
	if !ok {
		return Memory{}
	}
	return Memory{Total: m.Total, Used: m.Used, Free: m.Free}
}

func (r *reading) sensors(c *Card) {
	d := r.device
	if u, ok := maybe(r, "nvmlDeviceGetUtilizationRates", d.GetUtilizationRates); ok {
		n := int(u.Gpu)
		c.Utilization = &n
	}
	c.Temperature = number(r, "nvmlDeviceGetTemperature", func() (uint32, nvml.Return) { return d.GetTemperature(nvml.TEMPERATURE_GPU) })
	c.Slowdown = number(r, "nvmlDeviceGetTemperatureThreshold", func() (uint32, nvml.Return) {
		return d.GetTemperatureThreshold(nvml.TEMPERATURE_THRESHOLD_SLOWDOWN)
	})
	c.Power = milli(maybe(r, "nvmlDeviceGetPowerUsage", d.GetPowerUsage))
	c.PowerLimit = milli(maybe(r, "nvmlDeviceGetEnforcedPowerLimit", d.GetEnforcedPowerLimit))
	c.Energy = milli(maybe(r, "nvmlDeviceGetTotalEnergyConsumption", d.GetTotalEnergyConsumption))
	c.Fan = number(r, "nvmlDeviceGetFanSpeed", d.GetFanSpeed)
	c.ClockSM = number(r, "nvmlDeviceGetClockInfo", func() (uint32, nvml.Return) { return d.GetClockInfo(nvml.CLOCK_SM) })
	c.ClockMemory = number(r, "nvmlDeviceGetClockInfo", func() (uint32, nvml.Return) { return d.GetClockInfo(nvml.CLOCK_MEM) })
	ecc := func(kind nvml.MemoryErrorType) (uint64, bool) {
		return maybe(r, "nvmlDeviceGetTotalEccErrors", func() (uint64, nvml.Return) {
			return d.GetTotalEccErrors(kind, nvml.VOLATILE_ECC)
		})
	}
	if bad, ok := ecc(nvml.MEMORY_ERROR_TYPE_UNCORRECTED); ok {
		c.ECC = &ECC{Uncorrected: bad}
		c.ECC.Corrected, _ = ecc(nvml.MEMORY_ERROR_TYPE_CORRECTED)
	}
}

// milli turns a driver's thousandths into whole watts or joules.
func milli[T uint32 | uint64](v T, ok bool) *float64 {
	if !ok {
		return nil
	}
	f := float64(v) / 1000
	return &f
}

// slices finds the MIG instances of a card that is split.
func (r *reading) slices(c *Card) {
	if !r.has("nvmlDeviceGetMaxMigDeviceCount", "nvmlDeviceGetMigDeviceHandleByIndex", "nvmlDeviceGetGpuInstanceId", "nvmlDeviceGetComputeInstanceId") {
		return
	}
	mode, ok := maybe(r, "nvmlDeviceGetMigMode", func() (int, nvml.Return) {
		now, _, ret := r.device.GetMigMode()
		return now, ret
	})
	if c.MIG = ok && mode == nvml.DEVICE_MIG_ENABLE; !c.MIG {
		return
	}
	for i := range get(r, "nvmlDeviceGetMaxMigDeviceCount", r.device.GetMaxMigDeviceCount) {
		d, ok := maybe(r, "nvmlDeviceGetMigDeviceHandleByIndex", func() (nvml.Device, nvml.Return) {
			return r.device.GetMigDeviceHandleByIndex(i)
		})
		if !ok {
			continue // slots may be empty anywhere
		}
		c.Slices = append(c.Slices, Slice{
			UUID: get(r, "nvmlDeviceGetUUID", d.GetUUID), Name: get(r, "nvmlDeviceGetName", d.GetName), Memory: r.memory(d),
			GPUInstance:     get(r, "nvmlDeviceGetGpuInstanceId", d.GetGpuInstanceId),
			ComputeInstance: get(r, "nvmlDeviceGetComputeInstanceId", d.GetComputeInstanceId),
		})
	}
}

// processes lists who holds memory. One process may be listed as more than one kind: compute
// counts, so that its memory is not counted twice.
func (r *reading) processes(c *Card) {
	lists := []struct {
		kind Kind
		name string
		call func() ([]nvml.ProcessInfo, nvml.Return)
	}{
		{Compute, "nvmlDeviceGetComputeRunningProcesses_v3", r.device.GetComputeRunningProcesses},
		{MPS, "nvmlDeviceGetMPSComputeRunningProcesses_v3", r.device.GetMPSComputeRunningProcesses},
		{Graphics, "nvmlDeviceGetGraphicsRunningProcesses_v3", r.device.GetGraphicsRunningProcesses},
	}
	busy := r.busy()
	seen := map[[2]uint32]bool{}
	for _, list := range lists {
		infos, _ := maybe(r, list.name, list.call)
		for _, p := range infos {
			if key := [2]uint32{p.Pid, p.GpuInstanceId}; !seen[key] {
				seen[key] = true
				c.Processes = append(c.Processes, process(p, list.kind, *c, busy))
			}
			c.MPS = c.MPS || list.kind == MPS
		}
	}
}

func process(p nvml.ProcessInfo, kind Kind, c Card, busy map[uint32]int) Process {
	out := Process{PID: int(p.Pid), Kind: kind}
	if p.UsedGpuMemory != ^uint64(0) { // NVML_VALUE_NOT_AVAILABLE
		out.Memory = &p.UsedGpuMemory
	}
	if n, ok := busy[p.Pid]; ok {
		out.Utilization = &n
	}
	for _, s := range c.Slices {
		if s.GPUInstance == int(int32(p.GpuInstanceId)) {
			out.Slice = s.UUID
		}
	}
	return out
}

// busy is how much each process used of the card lately, in percent, by the newest sample. A
// card that can tell counts a process without a sample as idle only if it told of others.
func (r *reading) busy() map[uint32]int {
	samples, _ := maybe(r, "nvmlDeviceGetProcessUtilization", func() ([]nvml.ProcessUtilizationSample, nvml.Return) {
		return r.device.GetProcessUtilization(0)
	})
	busy, newest := map[uint32]int{}, map[uint32]uint64{}
	for _, s := range samples {
		if s.TimeStamp >= newest[s.Pid] {
			newest[s.Pid], busy[s.Pid] = s.TimeStamp, int(s.SmUtil)
		}
	}
	return busy
}

// busID is the card's address as /sys/bus/pci/devices writes it.
func busID(pci nvml.PciInfo) string {
	var b bytes.Buffer
	for _, c := range pci.BusId {
		if c == 0 {
			break
		}
		b.WriteByte(byte(c))
	}
	id := strings.ToLower(b.String())
	if len(id) == len("00000000:01:00.0") {
		id = id[4:] // the kernel writes domains with four digits
	}
	return id
}
