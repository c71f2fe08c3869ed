package main

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// While guests move files each packet of theirs is a fresh piece of memory. Collecting it four
// times as rarely as Go would takes a quarter off an upload's CPU time; what that leaves behind is
// given back to the system as soon as they are quiet.
const (
	collectPercent = 400
	quietEvery     = 5 * time.Second
	quietBelow     = 4 << 20 // bytes asked for within quietEvery
)

// tendMemory looks after this process's memory until ctx ends.
func tendMemory(ctx context.Context) {
	debug.SetGCPercent(collectPercent)
	tick := time.NewTicker(quietEvery)
	defer tick.Stop()
	m := memoryTender{asked: allocated, free: debug.FreeOSMemory}
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			m.look()
		}
	}
}

// memoryTender gives memory back once after each busy time.
type memoryTender struct {
	asked func() uint64 // bytes asked for since the start
	free  func()
	last  uint64
	dirty bool
}

func (m *memoryTender) look() {
	now := m.asked()
	busy := now-m.last >= quietBelow
	m.last = now
	if m.dirty && !busy {
		m.free()
	}
	m.dirty = busy
}

func allocated() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}
