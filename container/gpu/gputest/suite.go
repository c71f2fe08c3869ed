package gputest

import (
	"errors"
	"os"
	"reflect"
	"testing"
	"time"

	"github.com/berth-gpu/berth/container/gpu"
)

// Suite is what a driver must do with the states it is put in by set. It is run on Fake and,
// loaded through go-nvml, on the simulated NVML.
func Suite(t *testing.T, library gpu.Library, set func(State)) {
	t.Helper()
	for _, one := range []struct {
		name string
		test func(*testing.T, gpu.Library, func(State))
	}{
		{"driver", suiteDriver},
		{"a card", suiteCard},
		{"slices", suiteSlices},
		{"processes", suiteProcesses},
		{"a lost card", suiteLost},
		{"hangs", suiteHangs},
		{"events", suiteEvents},
	} {
		t.Run(one.name, func(t *testing.T) { one.test(t, library, set) })
	}
}

func suiteDriver(t *testing.T, l gpu.Library, set func(State)) {
	t.Helper()
	set(State{Errors: map[string]string{"nvmlInit_v2": "driver_not_loaded"}})
	if _, err := l.Open(); !errors.Is(err, gpu.ErrNoDriver) {
		t.Errorf("without its module: %v", err)
	}
	set(State{Driver: "570.86.15", CUDA: 12080, Cards: Cards(3)})
	d, err := l.Open()
	if want := (gpu.Driver{Version: "570.86.15", CUDA: "12.8", Simulated: true, Note: d.Note}); err != nil || d != want {
		t.Errorf("Open: %+v, %v, want %+v", d, err, want)
	}
	if n, err := l.Count(); n != 3 || err != nil {
		t.Errorf("Count: %d, %v", n, err)
	}
	set(State{Driver: "570.86.15"})
	if n, err := l.Count(); n != 0 || err != nil {
		t.Errorf("Count without cards: %d, %v", n, err)
	}
}

func suiteCard(t *testing.T, l gpu.Library, set func(State)) {
	t.Helper()
	s := State{Cards: Cards(2)}
	s.Cards[1].Memory.Used, s.Cards[1].ECC.Uncorrected = 1<<30, 7
	set(s)
	got := read(t, l, 1)
	zero, temp, slow, sm, mem := 0, 39, 90, 210, 405
	power, limit, energy := 22.0, 450.0, 1000.0
	want := gpu.Card{
		Index: 1, UUID: s.Cards[1].UUID, Name: "Simulated RTX 4090", PCI: "0000:02:00.0", Minor: 1, State: gpu.OK,
		Memory: gpu.Memory{Total: 24 << 30, Used: 1 << 30, Free: 23 << 30}, Utilization: &zero, Temperature: &temp, Slowdown: &slow,
		Power: &power, PowerLimit: &limit, Energy: &energy, Fan: &zero, ClockSM: &sm, ClockMemory: &mem,
		ECC: &gpu.ECC{Uncorrected: 7}, Processes: []gpu.Process{},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("Read:\n%+v, want\n%+v", got, want)
	}
	set(State{Cards: []Card{{UUID: "GPU-bare", Memory: Memory{Total: 1 << 30}}}})
	got = read(t, l, 0)
	if got.Utilization != nil || got.Temperature != nil || got.Power != nil || got.Fan != nil || got.ECC != nil || got.ClockSM != nil {
		t.Errorf("a card that tells nothing told numbers: %+v", got)
	}
}

func suiteSlices(t *testing.T, l gpu.Library, set func(State)) {
	t.Helper()
	s := State{Cards: Cards(1)}
	s.Cards[0].Split(2)
	gi := 2
	s.Cards[0].Processes = []Process{{PID: os.Getpid(), Memory: 3 << 30, GI: &gi}}
	set(s)
	c := read(t, l, 0)
	if !c.MIG || len(c.Slices) != 2 || c.Utilization != nil {
		t.Fatalf("a split card: %+v", c)
	}
	if got := c.Slices[1]; got.UUID != s.Cards[0].MIG[1].UUID || got.GPUInstance != 2 || got.Memory.Used != 3<<30 || c.Slices[0].Memory.Used != 0 {
		t.Errorf("slices: %+v", c.Slices)
	}
	if len(c.Processes) != 1 || c.Processes[0].Slice != c.Slices[1].UUID {
		t.Errorf("processes: %+v", c.Processes)
	}
}

func suiteProcesses(t *testing.T, l gpu.Library, set func(State)) {
	t.Helper()
	busy := 60
	s := State{Cards: Cards(1)}
	s.Cards[0].Processes = []Process{
		{PID: os.Getpid(), Memory: 3 << 30, Utilization: &busy},
		{PID: 1, Kind: "graphics"}, // a desktop that does not tell how much it holds
		{PID: 1 << 28, Memory: 1 << 30},
		{PID: 1<<28 + 1, Kind: "mps", Memory: 1 << 30, Ghost: true},
	}
	set(s)
	c := read(t, l, 0)
	three, one := uint64(3<<30), uint64(1<<30)
	want := []gpu.Process{
		{PID: os.Getpid(), Kind: gpu.Compute, Memory: &three, Utilization: &busy},
		{PID: 1<<28 + 1, Kind: gpu.MPS, Memory: &one},
		{PID: 1, Kind: gpu.Graphics},
	}
	if !reflect.DeepEqual(c.Processes, want) || c.Memory.Used != 4<<30 || !c.MPS {
		t.Errorf("processes %+v, used %d, MPS %v, want %+v", c.Processes, c.Memory.Used, c.MPS, want)
	}
}

func suiteLost(t *testing.T, l gpu.Library, set func(State)) {
	t.Helper()
	for _, function := range []string{
		"*", "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetName", "nvmlDeviceGetMemoryInfo", "nvmlDeviceGetComputeRunningProcesses_v3",
	} {
		s := State{Cards: Cards(2)}
		s.Cards[1].Errors = map[string]string{function: "gpu_is_lost"}
		set(s)
		if _, err := l.Read(1); !errors.Is(err, gpu.ErrLost) {
			t.Errorf("%s lost: %v", function, err)
		}
		read(t, l, 0)
	}
	set(State{Cards: Cards(2), Errors: map[string]string{"nvmlDeviceGetCount_v2": "gpu_is_lost"}})
	if _, err := l.Count(); !errors.Is(err, gpu.ErrLost) {
		t.Errorf("Count: %v", err)
	}
}

func suiteHangs(t *testing.T, l gpu.Library, set func(State)) {
	t.Helper()
	s := State{Cards: Cards(2)}
	s.Cards[1].Block = map[string]int{"nvmlDeviceGetName": 60000}
	set(s)
	done := make(chan error, 1)
	go func() {
		_, err := l.Read(1)
		done <- err
	}()
	read(t, l, 0)
	select {
	case err := <-done:
		t.Errorf("the call did not hang: %v", err)
	default:
	}
	set(State{Cards: Cards(2)})
	if err := <-done; err != nil {
		t.Errorf("the call came back with %v", err)
	}
}

func suiteEvents(t *testing.T, l gpu.Library, set func(State)) {
	t.Helper()
	s := State{Cards: Cards(2), Events: []Event{{ID: 1, Card: 0, Xid: 13}}}
	set(s)
	if _, err := l.Wait(50 * time.Millisecond); !errors.Is(err, gpu.ErrTimeout) {
		t.Errorf("an old event: %v", err)
	}
	s.Events = append(s.Events, Event{ID: 2, Card: 1, Xid: 79}, Event{ID: 3, Card: 0, Xid: 31})
	set(s)
	for _, want := range []gpu.Xid{{Card: s.Cards[1].UUID, Code: 79}, {Card: s.Cards[0].UUID, Code: 31}} {
		if x, err := l.Wait(10 * time.Second); err != nil || x != want {
			t.Errorf("Wait: %+v, %v, want %+v", x, err, want)
		}
	}
	set(State{Cards: s.Cards, Events: s.Events, Errors: map[string]string{"nvmlEventSetWait_v2": "unknown"}})
	if _, err := l.Wait(time.Second); err == nil || errors.Is(err, gpu.ErrTimeout) {
		t.Errorf("a driver that went away: %v", err)
	}
}

func read(t *testing.T, l gpu.Library, index int) gpu.Card {
	t.Helper()
	c, err := l.Read(index)
	if err != nil {
		t.Fatalf("Read(%d): %v", index, err)
	}
	return c
}
