package gpu

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// errSilent is the answer of a call that has not come back.
var errSilent = errors.New("the driver does not answer")

// calls keeps count of calls that hang, so that no second one is sent after them: each costs
// an operating system thread for as long as it hangs.
type calls struct {
	now func() time.Time

	mu   sync.Mutex
	busy map[string]time.Time // by name: since when
}

// begin takes the place of a call; since is when the one before it began that still hangs.
func (c *calls) begin(name string) (since time.Time, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if since, hangs := c.busy[name]; hangs {
		return since, false
	}
	c.busy[name] = c.now()
	return time.Time{}, true
}

func (c *calls) end(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.busy, name)
}

// attempt runs call in a goroutine of its own and waits for it no longer than patience. If
// it hangs it is left behind, and what it returns one day is forgotten.
func attempt[T any](ctx context.Context, c *calls, name string, patience time.Duration, call func() (T, error)) (T, error) {
	var none T
	if since, ok := c.begin(name); !ok {
		return none, fmt.Errorf("%w since %s", errSilent, since.UTC().Format("15:04:05 UTC"))
	}
	type answer struct {
		v   T
		err error
	}
	done := make(chan answer, 1)
	go func() {
		a := answer{err: errors.New("reading the card failed inside berth")}
		defer func() {
			_ = recover() // the answer is an error then
			c.end(name)
			done <- a
		}()
		a.v, a.err = call()
	}()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	select {
	case a := <-done:
		return a.v, a.err
	case <-limit.C:
		return none, fmt.Errorf("%w within %s", errSilent, patience)
	case <-ctx.Done():
		return none, ctx.Err()
	}
}
