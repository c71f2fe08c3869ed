package gpu

import (
	"context"
	"errors"
	"time"
)

// maxXids is how many errors of one card are remembered.
const maxXids = 8

// listen waits for hardware errors until ctx ends. It may hang in the driver for ever; nobody
// waits for it. A driver that fails at once each time is asked ever less often.
func (m *Monitor) listen(ctx context.Context) {
	wait := time.Second
	for ctx.Err() == nil {
		if m.Inventory().Driver != "" {
			x, err := m.o.Library.Wait(waitLimit)
			switch {
			case err == nil:
				m.report(ctx, x)
				wait = time.Second
				continue
			case errors.Is(err, ErrTimeout):
				wait = time.Second
				continue
			}
			m.o.Log.Debug("cannot watch for GPU errors", "cause", err, "again", wait)
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
		wait = min(2*wait, maxBackoff)
	}
}

// report remembers an error and tells whoever wants to know.
func (m *Monitor) report(ctx context.Context, x Xid) {
	x.At = m.o.Now()
	m.mu.Lock()
	list := append(m.xids[x.Card][:len(m.xids[x.Card]):len(m.xids[x.Card])], x)
	m.xids[x.Card] = list[max(0, len(list)-maxXids):]
	if x.Fatal() {
		m.sick[x.Card] = x
	}
	m.mu.Unlock()
	m.o.Log.Warn("GPU error", "card", x.Card, "xid", x.Code, "meaning", x.String())
	if m.o.OnXid != nil && ctx.Err() == nil {
		m.o.OnXid(x)
	}
}
