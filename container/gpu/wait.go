//go:build linux && cgo

package gpu

import (
	"errors"
	"fmt"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// Wait waits for the next hardware error. The cards are watched from the first Wait on, and
// again when their number has changed.
func (l *library) Wait(limit time.Duration) (Xid, error) {
	set, err := l.watched()
	if err != nil {
		return Xid{}, fmt.Errorf("watch cards: %w", err)
	}
	data, ret := set.Wait(uint32(limit.Milliseconds()))
	if ret != nvml.SUCCESS {
		return Xid{}, fmt.Errorf("wait for events: %w", class(ret))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return Xid{Card: l.known[data.Device], Code: data.EventData}, nil
}

var errNoEvents = errors.New("this driver reports no hardware errors")

// watched returns the set of events in which every card is registered that can be.
func (l *library) watched() (nvml.EventSet, error) {
	if !l.has("nvmlEventSetCreate", "nvmlEventSetFree", "nvmlEventSetWait_v2", "nvmlDeviceRegisterEvents") {
		return nil, errNoEvents
	}
	n, err := l.Count()
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	set, known := l.events, l.count
	l.mu.Unlock()
	if set != nil && n == known {
		return set, nil
	}
	fresh, ret := l.api.EventSetCreate()
	if ret != nvml.SUCCESS {
		return nil, class(ret)
	}
	names := map[nvml.Device]string{}
	for i := range n {
		d, ret := l.api.DeviceGetHandleByIndex(i)
		if ret != nvml.SUCCESS {
			continue // a lost card does not keep the others from being watched
		}
		if uuid, ret := d.GetUUID(); ret == nvml.SUCCESS && d.RegisterEvents(nvml.EventTypeXidCriticalError, fresh) == nvml.SUCCESS {
			names[d] = uuid
		}
	}
	if set != nil {
		_ = set.Free()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events, l.known, l.count = fresh, names, n
	return fresh, nil
}
