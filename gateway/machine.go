package gateway

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Machine is how busy the host's machine is.
type Machine struct {
	CPUs      int     `json:"cpus"`
	CPU       float64 `json:"cpu"` // the busy part of all processors, 0 to 1
	Memory    int64   `json:"memory"`
	MemoryAll int64   `json:"memory_all"`
	Disk      int64   `json:"disk"` // of the file system that holds the state directory
	DiskAll   int64   `json:"disk_all"`
	Load      float64 `json:"load"` // over a minute
}

// How long what was found out about the machine and about Docker is good for.
const (
	machineAge = 400 * time.Millisecond
	dockerAge  = 2 * time.Second
	dockerWait = 5 * time.Second // an answer that takes longer is none
)

// health remembers what the machine and Docker were like a moment ago.
type health struct {
	mu       sync.Mutex
	host     string
	machine  Machine
	measured time.Time
	busy     uint64 // processor time so far, in ticks
	all      uint64
	docker   string
	asked    time.Time
	asking   bool
}

// look returns what is known, after refreshing what has grown old. Docker is asked in the
// background: a daemon that hangs must not make the host's screen hang.
func (h *health) look(s *Server) (string, Machine, string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	if now.Sub(h.measured) > machineAge {
		h.measured = now
		h.measure(s.Dir)
	}
	if !h.asking && now.Sub(h.asked) > dockerAge {
		h.asking = true
		s.work.Go(func() { s.guarded("ask docker", func() { h.ask(s) }) })
	}
	return h.host, h.machine, h.docker
}

func (h *health) ask(s *Server) {
	ctx, cancel := context.WithTimeout(s.ctx, dockerWait)
	defer cancel()
	text := ""
	if err := s.Boxes.Ping(ctx); err != nil {
		text = "does not answer"
		s.Log.Debug("docker", "cause", err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.docker, h.asked, h.asking = text, time.Now(), false
}

// measure reads /proc; what cannot be read stays zero. It is called under the lock: these are
// reads of memory, and a bounded number of bytes.
func (h *health) measure(dir string) {
	if h.host == "" {
		h.host, _ = os.Hostname()
	}
	m := Machine{CPUs: runtime.NumCPU()}
	if busy, all, err := processorTime(); err == nil {
		if h.all > 0 && all > h.all {
			m.CPU = float64(busy-h.busy) / float64(all-h.all)
		}
		h.busy, h.all = busy, all
	}
	m.MemoryAll, m.Memory = memory()
	var fs unix.Statfs_t
	if unix.Statfs(dir, &fs) == nil {
		m.DiskAll = int64(fs.Blocks) * fs.Bsize
		m.Disk = m.DiskAll - int64(fs.Bavail)*fs.Bsize
	}
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		first, _, _ := strings.Cut(string(text), " ")
		m.Load, _ = strconv.ParseFloat(first, 64)
	}
	h.machine = m
}

// processorTime reads the first line of /proc/stat, proc_stat(5): user, nice, system, idle,
// iowait, irq, softirq, steal.
func processorTime() (busy, all uint64, err error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, 0, err
	}
	line, _, _ := bytes.Cut(text, []byte("\n"))
	fields := strings.Fields(string(line))
	if len(fields) < 9 {
		return 0, 0, fmt.Errorf("read /proc/stat: %d fields", len(fields))
	}
	for i, f := range fields[1:9] {
		n, err := strconv.ParseUint(f, 10, 64)
		if err != nil {
			return 0, 0, fmt.Errorf("read /proc/stat: %w", err)
		}
		all += n
		if i != 3 && i != 4 {
			busy += n
		}
	}
	return busy, all, nil
}

// memory reads /proc/meminfo: all there is, and what is in use and could not be given back.
func memory() (all, used int64) {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, 0
	}
	available := int64(0)
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		n, _ := strconv.ParseInt(fields[1], 10, 64)
		switch fields[0] {
		case "MemTotal:":
			all = n << 10
		case "MemAvailable:":
			available = n << 10
		}
	}
	return all, all - available
}
