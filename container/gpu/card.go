package gpu

import "time"

// State is how a card is doing.
type State string

// The states of a card. Only an OK card is lent.
const (
	OK        State = "ok"
	Lost      State = "lost"          // it fell off the bus, or is gone from the driver's list
	Silent    State = "not answering" // a call to the driver about it has not come back
	Unhealthy State = "unhealthy"     // the driver reported an error that only a reset or a reboot mends
)

// Inventory is what the last look found. It is a value: nobody else changes it.
type Inventory struct {
	At        time.Time `json:"at"`
	Driver    string    `json:"driver,omitempty"` // version; empty without a driver
	CUDA      string    `json:"cuda,omitempty"`   // the newest that the driver can do, as 12.8
	Simulated bool      `json:"simulated,omitempty"`
	Note      string    `json:"note,omitempty"` // why there are no cards
	Cards     []Card    `json:"cards"`
}

// Card is one GPU. A nil number is one that this card does not tell: it is not zero.
type Card struct {
	Index  int    `json:"index"`
	UUID   string `json:"uuid"`
	Name   string `json:"name"`
	PCI    string `json:"pci,omitempty"`
	Minor  int    `json:"minor"` // of /dev/nvidiaN; -1 if not known
	State  State  `json:"state"`
	Detail string `json:"detail,omitempty"` // why it is not OK

	Memory      Memory    `json:"memory"`
	Utilization *int      `json:"utilization"` // percent
	Temperature *int      `json:"temperature"` // degrees Celsius
	Slowdown    *int      `json:"slowdown"`    // where the driver slows it down
	Power       *float64  `json:"power"`       // watts
	PowerLimit  *float64  `json:"power_limit"`
	Energy      *float64  `json:"energy"` // joules since the driver was loaded
	Fan         *int      `json:"fan"`    // percent
	ClockSM     *int      `json:"clock_sm"`
	ClockMemory *int      `json:"clock_memory"`
	ECC         *ECC      `json:"ecc"`
	MIG         bool      `json:"mig"` // it is split; Slices are what can be lent
	Slices      []Slice   `json:"slices,omitempty"`
	MPS         bool      `json:"mps,omitempty"` // processes share it through MPS
	Processes   []Process `json:"processes"`
	Xids        []Xid     `json:"xids,omitempty"` // the last few errors, oldest first
}

// Memory is a card's or slice's, in bytes. Total is 0 where it is not told.
type Memory struct {
	Total uint64 `json:"total"`
	Used  uint64 `json:"used"`
	Free  uint64 `json:"free"`
}

// ECC counts memory errors since the driver was loaded.
type ECC struct {
	Corrected   uint64 `json:"corrected"`
	Uncorrected uint64 `json:"uncorrected"`
}

// Slice is a MIG instance of a card.
type Slice struct {
	UUID            string `json:"uuid"`
	Name            string `json:"name"`
	GPUInstance     int    `json:"gpu_instance"`
	ComputeInstance int    `json:"compute_instance"`
	Memory          Memory `json:"memory"`
}

// Kind says what a process does on a card.
type Kind string

// The kinds of process that the driver tells apart.
const (
	Compute  Kind = "compute"
	Graphics Kind = "graphics" // a desktop, say
	MPS      Kind = "mps"      // compute, through the MPS server
)

// Process is one that holds something of a card. PID is the host's.
type Process struct {
	PID         int     `json:"pid"`
	Kind        Kind    `json:"kind"`
	Memory      *uint64 `json:"memory"` // bytes
	Utilization *int    `json:"utilization"`
	Slice       string  `json:"slice,omitempty"` // UUID of the MIG instance
}

// Find returns the card with this UUID, or the card whose slice has it.
func (i Inventory) Find(uuid string) (Card, bool) {
	for _, c := range i.Cards {
		if c.UUID == uuid && uuid != "" {
			return c, true
		}
		if _, ok := c.slice(uuid); ok {
			return c, true
		}
	}
	return Card{}, false
}

func (c Card) slice(uuid string) (Slice, bool) {
	for _, s := range c.Slices {
		if s.UUID == uuid && uuid != "" {
			return s, true
		}
	}
	return Slice{}, false
}
