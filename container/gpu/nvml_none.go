//go:build !linux || !cgo

package gpu

import (
	"fmt"
	"time"
)

type library struct{}

// NVML returns a driver that is not there: this program was built without C, by which NVML
// is reached.
func NVML(string) Library { return library{} }

var errBuilt = fmt.Errorf("%w: this berth was built without a C compiler and cannot look for one", ErrNoDriver)

// Open fails.
func (library) Open() (Driver, error) { return Driver{}, errBuilt }

// Count fails.
func (library) Count() (int, error) { return 0, errBuilt }

// Read fails.
func (library) Read(int) (Card, error) { return Card{}, errBuilt }

// Wait fails.
func (library) Wait(time.Duration) (Xid, error) { return Xid{}, errBuilt }
