package tui

import (
	"time"

	"github.com/berth-gpu/berth/gateway"
)

// history keeps the newest values of what graphs show, by name.
type history map[string][]float64

// remembered is how many values a graph remembers: at two a second, four minutes.
const remembered = 480

func (h history) add(name string, v float64) {
	values := append(h[name], v)
	if len(values) > 2*remembered {
		values = append([]float64(nil), values[len(values)-remembered:]...)
	}
	h[name] = values
}

// rates turns counters into bytes a second, by name.
type rates map[string]counter

type counter struct {
	at       time.Time
	in, out  int64
	inRate   float64
	outRate  float64
	seenLast bool
}

// smooth is how much a new value counts: a rate that jumps at every update cannot be read.
const smooth = 0.5

// add notes the counters of name at a time.
func (r rates) add(name string, at time.Time, in, out int64) {
	c, known := r[name]
	passed := at.Sub(c.at).Seconds()
	switch {
	case known && passed > 0 && in >= c.in && out >= c.out:
		c.inRate += smooth * (float64(in-c.in)/passed - c.inRate)
		c.outRate += smooth * (float64(out-c.out)/passed - c.outRate)
	case known && passed <= 0:
		return
	default:
		c.inRate, c.outRate = 0, 0
	}
	c.at, c.in, c.out, c.seenLast = at, in, out, true
	r[name] = c
}

// forget drops what was not added since the last call.
func (r rates) forget() {
	for name, c := range r {
		if !c.seenLast {
			delete(r, name)
			continue
		}
		c.seenLast = false
		r[name] = c
	}
}

// record takes a new overview into what graphs and rates remember.
func (m *Model) record(o gateway.Overview) {
	m.past.add("cpu", o.Machine.CPU)
	for _, l := range o.Links {
		for _, s := range l.Sessions {
			m.rates.add(s.ID, o.Now, s.BytesIn, s.BytesOut)
		}
	}
	m.rates.forget()
}
