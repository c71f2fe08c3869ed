package tunnel

import (
	"context"
	"log/slog"
	"net"
	"slices"
	"sync"
	"time"
)

// State is how a door is.
type State string

// The states of a door.
const (
	Connecting State = "connecting" // tried for the first time, or again right after a cut
	Up         State = "up"
	Down       State = "down" // the last try failed; Status.Why says why
)

// Status is a door as the host sees it.
type Status struct {
	Name   string
	State  State
	Why    string // why it is down
	Hint   string // what the host can do about that
	Detail string // where it leads
	Since  time.Time
	In     int64 // bytes from guests, encrypted as they are
	Out    int64
}

// Doors keeps several doors open at once. One that fails is tried again, later and later, and
// takes no other down. Add every door before Start.
type Doors struct {
	Log *slog.Logger // if nil, slog.Default

	keepers []*keeper
	cancel  context.CancelFunc
	work    sync.WaitGroup
}

// Add takes a door. Where it is open already its listener is given too.
func (d *Doors) Add(door Door, open net.Listener) {
	d.keepers = append(d.keepers, newKeeper(door, open))
}

// Start begins to open the doors and to look after them, until Close.
func (d *Doors) Start(ctx context.Context) {
	if d.Log == nil {
		d.Log = slog.Default()
	}
	ctx, d.cancel = context.WithCancel(context.WithoutCancel(ctx))
	for _, k := range d.keepers {
		k.log = d.Log.With("door", k.door.Name())
		d.work.Go(func() { k.run(ctx) })
	}
}

// Listeners are the doors by name, each as one listener for the whole life of Doors: its
// Accept waits while the door is closed, and fails only after Close.
func (d *Doors) Listeners() map[string]net.Listener {
	all := make(map[string]net.Listener, len(d.keepers))
	for _, k := range d.keepers {
		all[k.door.Name()] = k
	}
	return all
}

// Status is how each door is, in the order in which they were added.
func (d *Doors) Status() []Status {
	all := make([]Status, 0, len(d.keepers))
	for _, k := range d.keepers {
		all = append(all, k.status())
	}
	return all
}

// Way is a door with lines that work now.
type Way struct {
	Door string
	Lines
}

// Lines are what a guest types now, the shortest first.
func (d *Doors) Lines(token string) []Way {
	var all []Way
	for _, k := range d.keepers {
		if k.status().State != Up {
			continue
		}
		for _, l := range k.door.Lines(token) {
			all = append(all, Way{Door: k.door.Name(), Lines: l})
		}
	}
	slices.SortStableFunc(all, func(a, b Way) int { return len(a.SSH) - len(b.SSH) })
	return all
}

// Settled waits until every door has been up or has failed once, or ctx ends.
func (d *Doors) Settled(ctx context.Context) {
	for _, k := range d.keepers {
		select {
		case <-k.settled:
		case <-ctx.Done():
			return
		}
	}
}

// Close closes every door and returns when that is done.
func (d *Doors) Close() {
	if d.cancel != nil {
		d.cancel()
	}
	for _, k := range d.keepers {
		_ = k.door.Close()
	}
	d.work.Wait()
}
