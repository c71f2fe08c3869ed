package gpu

import (
	"errors"
	"time"
)

// The classes of error that a Library returns; anything else is a failure of one call.
var (
	ErrNoDriver  = errors.New("no NVIDIA driver")           // no library, or no kernel module: an ordinary host
	ErrLost      = errors.New("card is lost")               // GPU_IS_LOST: it does not come back without a reset
	ErrTimeout   = errors.New("no event in time")           // Wait only
	ErrForbidden = errors.New("the driver does not permit") // another user's device files
)

// Library is a GPU driver as Monitor needs it: NVML, or the twin in gputest. Any call may block
// for ever. Calls about different cards, and Wait, run at the same time.
type Library interface {
	Open() (Driver, error)                 // loads it; called again while it fails, and changes nothing once it did not
	Count() (int, error)                   // how many cards there are, lost ones included or not, as the driver likes
	Read(index int) (Card, error)          // everything about one card; with ErrLost what is still known
	Wait(limit time.Duration) (Xid, error) // the next hardware error of any card, or ErrTimeout
}

// Driver is what is installed.
type Driver struct {
	Version, CUDA string
	Simulated     bool
	Note          string // why there are no cards, where the driver itself says so
}
