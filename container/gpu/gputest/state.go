package gputest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// State is what the simulated driver finds: the file that BERTH_NVML_SIM names. Whatever is
// left out is something that the card does not support.
type State struct {
	Driver string            `json:"driver,omitempty"`
	CUDA   int               `json:"cuda,omitempty"` // 12080 for 12.8
	Cards  []Card            `json:"cards"`
	Events []Event           `json:"events"`
	Errors map[string]string `json:"errors,omitempty"` // by NVML function: the error it returns, as gpu_is_lost
	Block  map[string]int    `json:"block,omitempty"`  // by NVML function: for how many milliseconds it hangs
}

// Card is one simulated card. In its Errors and Block "*" means every function.
type Card struct {
	UUID        string            `json:"uuid"`
	Name        string            `json:"name"`
	PCI         string            `json:"pci,omitempty"`
	Minor       int               `json:"minor"`
	Memory      Memory            `json:"memory"`
	Utilization *int              `json:"utilization,omitempty"`
	Temperature int               `json:"temperature,omitempty"`
	Slowdown    int               `json:"slowdown,omitempty"`
	Power       int               `json:"power,omitempty"`       // milliwatts
	PowerLimit  int               `json:"power_limit,omitempty"` // milliwatts
	Energy      int64             `json:"energy,omitempty"`      // millijoules
	Clocks      *Clocks           `json:"clocks,omitempty"`
	Fan         *int              `json:"fan,omitempty"`
	ECC         *ECC              `json:"ecc,omitempty"`
	MIG         []Slice           `json:"mig,omitempty"`
	Processes   []Process         `json:"processes"`
	Errors      map[string]string `json:"errors,omitempty"`
	Block       map[string]int    `json:"block,omitempty"`
}

// Memory is in bytes. Used is what no process of the state holds.
type Memory struct {
	Total uint64 `json:"total"`
	Used  uint64 `json:"used"`
}

// Clocks are in MHz.
type Clocks struct {
	SM     int `json:"sm"`
	Memory int `json:"memory"`
}

// ECC counts memory errors.
type ECC struct {
	Corrected   uint64 `json:"corrected"`
	Uncorrected uint64 `json:"uncorrected"`
}

// Slice is a MIG instance.
type Slice struct {
	UUID   string `json:"uuid"`
	Name   string `json:"name"`
	GI     int    `json:"gi"`
	CI     int    `json:"ci"`
	Memory Memory `json:"memory"`
}

// Process holds memory for as long as the process PID lives; a ghost, for ever.
type Process struct {
	PID         int    `json:"pid"`
	Kind        string `json:"kind,omitempty"` // compute (if empty), graphics or mps
	Memory      uint64 `json:"memory,omitempty"`
	Utilization *int   `json:"utilization,omitempty"`
	GI          *int   `json:"gi,omitempty"`
	Ghost       bool   `json:"ghost,omitempty"`
}

// Event is an Xid on a card. Events are handed out once, by ids that grow.
type Event struct {
	ID   int    `json:"id"`
	Card int    `json:"card"`
	Xid  uint64 `json:"xid"`
}

// Cards returns n cards of 24 GiB, idle and cool.
func Cards(n int) []Card {
	cards := make([]Card, n)
	for i := range cards {
		idle, fan := 0, 0
		cards[i] = Card{
			UUID: fmt.Sprintf("GPU-%08d-5170-4c3a-9b1e-%012d", i, i), Name: "Simulated RTX 4090", PCI: fmt.Sprintf("00000000:%02X:00.0", i+1),
			Minor: i, Memory: Memory{Total: 24 << 30}, Utilization: &idle, Temperature: 38 + i, Slowdown: 90, Power: 21000 + 1000*i,
			PowerLimit: 450000, Energy: 1000000, Clocks: &Clocks{SM: 210, Memory: 405}, Fan: &fan, ECC: &ECC{}, Processes: []Process{},
		}
	}
	return cards
}

// Split makes a card one of 40 GiB that is split into n MIG instances.
func (c *Card) Split(n int) {
	c.Name, c.Memory.Total, c.Utilization, c.MIG = "Simulated A100", 40<<30, nil, nil
	for i := range n {
		c.MIG = append(c.MIG, Slice{
			UUID: fmt.Sprintf("MIG-%08d-5170-4c3a-9b1e-%012d", 10*c.Minor+i, i), Name: "Simulated A100 MIG", GI: i + 1,
			Memory: Memory{Total: 20 << 30},
		})
	}
}

// Write puts the state where the simulated driver reads it, at once.
func (s State) Write(tb testing.TB, path string) {
	tb.Helper()
	data, err := json.MarshalIndent(s, "", "  ")
	if err == nil {
		err = os.WriteFile(path+".new", data, 0o600)
	}
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		tb.Fatal(err)
	}
}

// Read reads a state back.
func Read(tb testing.TB, path string) State {
	tb.Helper()
	var s State
	data, err := os.ReadFile(filepath.Clean(path))
	if err == nil {
		err = json.Unmarshal(data, &s)
	}
	if err != nil {
		tb.Fatal(err)
	}
	return s
}
