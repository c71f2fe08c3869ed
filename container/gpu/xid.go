package gpu

import (
	"fmt"
	"time"
)

// Xid is a hardware or driver error that the kernel module reported, by its number in
// NVIDIA's list (docs.nvidia.com/deploy/xid-errors).
type Xid struct {
	Card string    `json:"card"` // UUID; empty if the driver did not say
	Code uint64    `json:"code"`
	At   time.Time `json:"at"`
}

// Fatal reports whether the card cannot be used until it is reset. An error of a program on it
// (13, 31, 43, 45 and their like) condemns nobody but the program.
func (x Xid) Fatal() bool {
	switch x.Code {
	case 46, 48, 61, 62, 64, 74, 79, 95, 109, 110, 119, 120, 136, 140, 143, 154:
		return true
	}
	return false
}

// String says what happened and what to do, in a line for people.
func (x Xid) String() string {
	what, ok := xids[x.Code]
	if !ok {
		what = "an error that this program does not know"
	}
	do := "the program that caused it has to be started again"
	if x.Fatal() {
		do = "the card needs a reset (nvidia-smi --gpu-reset) or the machine a restart"
	}
	return fmt.Sprintf("Xid %d, %s: %s", x.Code, what, do)
}

var xids = map[uint64]string{
	13:  "a program made the GPU do what it cannot",
	31:  "a program used memory that is not its own",
	43:  "a program stopped the GPU",
	45:  "a program was ended on the GPU",
	46:  "the GPU stopped processing",
	48:  "an uncorrectable memory error",
	61:  "an internal error of the GPU",
	62:  "an internal halt of the GPU",
	63:  "a memory page was retired",
	64:  "a memory page could not be retired",
	68:  "a video decoder error",
	69:  "a program made the GPU do what it cannot",
	74:  "an NVLink error",
	79:  "the GPU has fallen off the bus",
	92:  "many corrected memory errors",
	94:  "a memory error that was contained",
	95:  "a memory error that was not contained",
	109: "a context switch timed out",
	110: "a security fault",
	119: "the GPU's own processor does not answer",
	120: "an error of the GPU's own processor",
	136: "a link could not be trained",
	140: "an unrecovered memory error",
	143: "the GPU could not be started",
	154: "the GPU asks for a recovery",
}
