package gateway

import (
	"context"
	"slices"
	"time"

	"github.com/berth-gpu/berth/gateway/link"
)

// Overview is everything the host's screen shows, of one moment.
type Overview struct {
	Now     time.Time   `json:"now"`
	Host    string      `json:"host"`             // this machine's name
	Docker  string      `json:"docker,omitempty"` // why Docker does not answer; empty while it does
	Doors   []DoorState `json:"doors"`
	HostKey HostKey     `json:"host_key"`
	Machine Machine     `json:"machine"`
	Links   []LinkView  `json:"links"`  // all that live, then those that ended last
	Events  []Event     `json:"events"` // the newest, oldest first
}

// OverviewOptions bound what an overview holds.
type OverviewOptions struct {
	Events int `json:"events"` // how many of the newest events
	Ended  int `json:"ended"`  // how many of the links that have ended
}

// Overview returns what the host's screen shows. It asks nobody and waits for nothing: what
// the machine and Docker are like was found out in the background a moment ago.
func (s *Server) Overview(_ context.Context, o OverviewOptions) (Overview, error) {
	events, err := s.audit.last(max(o.Events, 1))
	if err != nil {
		return Overview{}, err
	}
	v := Overview{Now: s.Now(), Events: events, Links: []LinkView{}, Doors: s.doorStates()}
	v.HostKey = s.hostKeyView(nil)
	v.Host, v.Machine, v.Docker = s.health.look(s)
	for _, l := range s.shown(o.Ended) {
		one := s.view(l)
		one.Doors = []DoorState{} // they are the same for all, and above
		v.Links = append(v.Links, one)
	}
	return v, nil
}

// shown are the links that live, oldest first, and then the last n that ended.
func (s *Server) shown(n int) []link.Link {
	var alive, ended []link.Link
	for _, l := range s.Book.List() {
		if l.State == link.Ended {
			ended = append(ended, l)
		} else {
			alive = append(alive, l)
		}
	}
	slices.SortStableFunc(ended, func(a, b link.Link) int { return b.EndedAt.Compare(a.EndedAt) })
	return append(alive, ended[:min(n, len(ended))]...)
}
