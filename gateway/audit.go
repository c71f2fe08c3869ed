package gateway

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"
)

// audit is the append-only log of what host and guests did, one JSON object a line.
type audit struct {
	now func() time.Time

	mu     sync.Mutex
	f      *os.File
	recent []Event // the newest, at most remembered; a screen asks for them twice a second
}

// remembered is how many events are kept in memory.
const remembered = 1000

func openAudit(path string, now func() time.Time) (*audit, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open audit log: %w", err)
	}
	a := &audit{now: now, f: f}
	if a.recent, err = a.read(remembered); err != nil {
		_ = f.Close()
		return nil, err
	}
	return a, nil
}

// write appends e. A line that was cut short by a full disk or a crash is closed first, so
// that it spoils only itself.
func (a *audit) write(e Event) error {
	e.Time = a.now().UTC()
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("write audit log: %w", err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if end, err := a.f.Seek(0, io.SeekEnd); err == nil && end > 0 {
		var last [1]byte
		if _, err := a.f.ReadAt(last[:], end-1); err == nil && last[0] != '\n' {
			line = append([]byte{'\n'}, line...)
		}
	}
	if _, err := a.f.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("write audit log: %w", err)
	}
	if a.recent = append(a.recent, e); len(a.recent) > 2*remembered {
		a.recent = append([]Event(nil), a.recent[len(a.recent)-remembered:]...)
	}
	return nil
}

// last returns the last n events, oldest first; all when n is 0.
func (a *audit) last(n int) ([]Event, error) {
	a.mu.Lock()
	if n > 0 && n <= len(a.recent) {
		defer a.mu.Unlock()
		return slices.Clone(a.recent[len(a.recent)-n:]), nil
	}
	a.mu.Unlock()
	return a.read(n)
}

// read reads the last n events from the file; all when n is 0. Lines that are no events are
// left out.
func (a *audit) read(n int) ([]Event, error) {
	f, err := os.Open(a.f.Name())
	if err != nil {
		return nil, fmt.Errorf("read audit log: %w", err)
	}
	defer func() { _ = f.Close() }()
	all := []Event{}
	r := bufio.NewReader(f)
	for {
		line, err := r.ReadBytes('\n')
		var e Event
		if json.Unmarshal(bytes.TrimSpace(line), &e) == nil {
			all = append(all, e)
		}
		if n > 0 && len(all) > 2*n {
			all = append(all[:0], all[len(all)-n:]...)
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read audit log: %w", err)
		}
	}
	if n > 0 && len(all) > n {
		all = all[len(all)-n:]
	}
	return all, nil
}

func (a *audit) close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.f.Close()
}

// note records e in the audit log and the host's log.
func (s *Server) note(e Event) {
	s.Log.Info(e.Event, "link", e.Link, "session", e.Session, "address", e.Address, "key", e.Key, "detail", e.Detail)
	if err := s.audit.write(e); err != nil {
		s.Log.Error("audit", "cause", err)
	}
}
