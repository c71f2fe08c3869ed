package main

import (
	"slices"
	"testing"
)

// TestMemoryTender: memory is given back once after each busy time, and never within one.
func TestMemoryTender(t *testing.T) {
	asked := []uint64{0, 100 << 20, 300 << 20, 300<<20 + 1, 300<<20 + 2, 310 << 20, 310 << 20}
	var freed []int
	i := 0
	m := memoryTender{asked: func() uint64 { return asked[i] }, free: func() { freed = append(freed, i) }}
	for i = range asked {
		m.look()
	}
	if want := []int{3, 6}; !slices.Equal(freed, want) {
		t.Errorf("freed after looks %v, want %v", freed, want)
	}
	if before := allocated(); before == 0 || allocated() < before {
		t.Errorf("the count of what was asked for does not grow from %d", before)
	}
}
