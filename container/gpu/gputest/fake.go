package gputest

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/berth-gpu/berth/container/gpu"
)

// Fake is a gpu.Library in memory, the twin of the simulated NVML: it tells the same of the same
// State. The zero value has no driver: see Set.
type Fake struct {
	mu      sync.Mutex // guards what is below; never held while a call hangs
	state   *State
	changed chan struct{}
	seen    int // the last event that Wait handed out
	waits   bool
}

// Set changes what the driver finds. Calls that hang look again.
func (f *Fake) Set(s State) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.state = &s
	if f.changed != nil {
		close(f.changed)
	}
	f.changed = make(chan struct{})
}

func (f *Fake) now() (*State, chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state, f.changed
}

// rule is what the state or the card says about a function.
func rule[T any](own, all map[string]T, name string) (T, bool) {
	if v, ok := own[name]; ok {
		return v, true
	}
	if v, ok := own["*"]; ok {
		return v, true
	}
	v, ok := all[name]
	return v, ok
}

var failures = map[string]error{
	"gpu_is_lost": gpu.ErrLost, "reset_required": gpu.ErrLost, "timeout": gpu.ErrTimeout,
	"driver_not_loaded": gpu.ErrNoDriver, "no_permission": gpu.ErrForbidden,
}

// call enters one function: it hangs while the state says so, and fails as it says.
func (f *Fake) call(name string, card int) (*State, *Card, error) {
	began := time.Now()
	for {
		s, changed := f.now()
		if s == nil {
			return nil, nil, fmt.Errorf("%w: this fake has no state", gpu.ErrNoDriver)
		}
		c := &Card{}
		if card >= 0 {
			if card >= len(s.Cards) {
				return s, nil, gpu.ErrLost
			}
			c = &s.Cards[card]
		}
		ms, _ := rule(c.Block, s.Block, name)
		if left := time.Duration(ms)*time.Millisecond - time.Since(began); left > 0 {
			select {
			case <-time.After(left):
			case <-changed:
			}
			continue
		}
		if text, ok := rule(c.Errors, s.Errors, name); ok {
			if err, known := failures[text]; known {
				return s, c, err
			}
			return s, c, errors.New(text)
		}
		return s, c, nil
	}
}

// Open finds the driver.
func (f *Fake) Open() (gpu.Driver, error) {
	s, _, err := f.call("nvmlInit_v2", -1)
	if err != nil {
		return gpu.Driver{}, err
	}
	d := gpu.Driver{Version: s.Driver, Simulated: true}
	if s.CUDA > 0 {
		d.CUDA = fmt.Sprintf("%d.%d", s.CUDA/1000, s.CUDA%1000/10)
	}
	return d, nil
}

// Count counts the cards.
func (f *Fake) Count() (int, error) {
	s, _, err := f.call("nvmlDeviceGetCount_v2", -1)
	if err != nil {
		return 0, err
	}
	return len(s.Cards), nil
}

// Read tells what the state says about a card.
func (f *Fake) Read(index int) (gpu.Card, error) {
	out := gpu.Card{Index: index, Minor: -1, State: gpu.OK, Processes: []gpu.Process{}}
	_, c, err := f.call("nvmlDeviceGetHandleByIndex_v2", index)
	if err != nil {
		return out, fmt.Errorf("open card: %w", err)
	}
	r := &reading{f: f, index: index}
	r.read("nvmlDeviceGetUUID", func() { out.UUID = c.UUID })
	r.read("nvmlDeviceGetName", func() { out.Name = c.Name })
	r.read("nvmlDeviceGetPciInfo_v3", func() { out.PCI = strings.ToLower(strings.TrimPrefix(c.PCI, "0000")) })
	r.read("nvmlDeviceGetMinorNumber", func() { out.Minor = c.Minor })
	r.read("nvmlDeviceGetMemoryInfo", func() { out.Memory = memory(c.Memory, c.Processes, nil) })
	r.sensors(c, &out)
	r.read("nvmlDeviceGetMigMode", func() { out.MIG = c.MIG != nil })
	for _, s := range c.MIG {
		out.Slices = append(out.Slices, gpu.Slice{
			UUID: s.UUID, Name: s.Name, GPUInstance: s.GI, ComputeInstance: s.CI, Memory: memory(s.Memory, c.Processes, &s.GI),
		})
	}
	r.processes(c, &out)
	return out, r.lost
}

type reading struct {
	f     *Fake
	index int
	lost  error
}

// read does set unless the function fails, or the card was found lost.
func (r *reading) read(name string, set func()) {
	if r.lost != nil {
		return
	}
	_, _, err := r.f.call(name, r.index)
	if errors.Is(err, gpu.ErrLost) {
		r.lost = fmt.Errorf("read card: %w", err)
	}
	if err == nil {
		set()
	}
}

func (r *reading) sensors(c *Card, out *gpu.Card) {
	r.read("nvmlDeviceGetUtilizationRates", func() { out.Utilization = c.Utilization })
	r.read("nvmlDeviceGetTemperature", func() { out.Temperature = some(c.Temperature) })
	r.read("nvmlDeviceGetTemperatureThreshold", func() { out.Slowdown = some(c.Slowdown) })
	r.read("nvmlDeviceGetPowerUsage", func() { out.Power = milli(int64(c.Power)) })
	r.read("nvmlDeviceGetEnforcedPowerLimit", func() { out.PowerLimit = milli(int64(c.PowerLimit)) })
	r.read("nvmlDeviceGetTotalEnergyConsumption", func() { out.Energy = milli(c.Energy) })
	r.read("nvmlDeviceGetFanSpeed", func() { out.Fan = c.Fan })
	r.read("nvmlDeviceGetClockInfo", func() {
		if c.Clocks != nil {
			out.ClockSM, out.ClockMemory = &c.Clocks.SM, &c.Clocks.Memory
		}
	})
	r.read("nvmlDeviceGetTotalEccErrors", func() {
		if c.ECC != nil {
			out.ECC = &gpu.ECC{Corrected: c.ECC.Corrected, Uncorrected: c.ECC.Uncorrected}
		}
	})
}

func (r *reading) processes(c *Card, out *gpu.Card) {
	busy := false
	r.read("nvmlDeviceGetProcessUtilization", func() { busy = c.MIG == nil })
	for _, kind := range []struct{ name, function string }{
		{"compute", "nvmlDeviceGetComputeRunningProcesses_v3"},
		{"mps", "nvmlDeviceGetMPSComputeRunningProcesses_v3"},
		{"graphics", "nvmlDeviceGetGraphicsRunningProcesses_v3"},
	} {
		r.read(kind.function, func() {
			for _, p := range c.Processes {
				if p.kind() != kind.name || !p.alive() {
					continue
				}
				one := gpu.Process{PID: p.PID, Kind: gpu.Kind(kind.name), Slice: c.slice(p)}
				if p.Memory > 0 {
					one.Memory = &p.Memory
				}
				if busy {
					one.Utilization = p.Utilization
				}
				out.MPS = out.MPS || kind.name == "mps"
				out.Processes = append(out.Processes, one)
			}
		})
	}
}

func (p Process) kind() string {
	if p.Kind == "" {
		return "compute"
	}
	return p.Kind
}

func (p Process) alive() bool {
	if p.Ghost {
		return true
	}
	err := syscall.Kill(p.PID, 0)
	return p.PID > 0 && (err == nil || errors.Is(err, syscall.EPERM))
}

func (c *Card) slice(p Process) string {
	for _, s := range c.MIG {
		if p.GI != nil && s.GI == *p.GI {
			return s.UUID
		}
	}
	return ""
}

// memory adds what processes hold, of one instance or of all.
func memory(m Memory, processes []Process, gi *int) gpu.Memory {
	used := m.Used
	for _, p := range processes {
		if p.alive() && (gi == nil || p.GI != nil && *p.GI == *gi) {
			used += p.Memory
		}
	}
	used = min(used, m.Total)
	return gpu.Memory{Total: m.Total, Used: used, Free: m.Total - used}
}

func some(n int) *int {
	if n == 0 {
		return nil
	}
	return &n
}

func milli(n int64) *float64 {
	if n == 0 {
		return nil
	}
	f := float64(n) / 1000
	return &f
}

// Wait hands out the next event. Those that were there before the first Wait are old.
func (f *Fake) Wait(limit time.Duration) (gpu.Xid, error) {
	deadline := time.After(limit)
	for {
		s, _, err := f.call("nvmlEventSetWait_v2", -1)
		if err != nil {
			return gpu.Xid{}, err
		}
		_, changed := f.now()
		if x, ok := f.next(s); ok {
			return x, nil
		}
		select {
		case <-deadline:
			return gpu.Xid{}, gpu.ErrTimeout
		case <-changed:
		}
	}
}

func (f *Fake) next(s *State) (gpu.Xid, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.waits {
		f.waits = true
		for _, e := range s.Events {
			f.seen = max(f.seen, e.ID)
		}
	}
	for _, e := range s.Events {
		if e.ID > f.seen && e.Card < len(s.Cards) {
			f.seen = e.ID
			return gpu.Xid{Card: s.Cards[e.Card].UUID, Code: e.Xid}, true
		}
	}
	return gpu.Xid{}, false
}
