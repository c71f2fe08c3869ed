package cloudflare

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/berth-gpu/berth/tunnel/internal/wire"
)

// registrar is our side of the registration RPC on one control stream: the client of a few calls
// that offers nothing itself.
type registrar struct {
	w    io.Writer
	done chan struct{} // closed when nothing is read any more

	write sync.Mutex // one message at a time

	mu      sync.Mutex
	next    uint32
	waiting map[uint32]chan *wire.Message
	target  wire.Target // what calls are made on
	err     error       // set before done is closed
}

// newRegistrar asks for the edge's capability and begins to read. The caller ends the reading by
// closing rw, and waits for done.
func newRegistrar(rw io.ReadWriter) *registrar {
	r := &registrar{
		w: rw, done: make(chan struct{}), next: 1, waiting: make(map[uint32]chan *wire.Message),
		target: wire.Target{Promised: true, ID: 0}, // the answer to the bootstrap, which may still be on its way
	}
	err := r.send(wire.Bootstrap(0)) // before any call on its answer
	go func() {
		for err == nil {
			var m *wire.Message
			if m, err = wire.Read(rw); err == nil {
				err = r.handle(m)
			}
		}
		r.mu.Lock()
		r.err = err
		r.mu.Unlock()
		close(r.done)
	}()
	return r
}

func (r *registrar) send(frame []byte) error {
	r.write.Lock()
	defer r.write.Unlock()
	_, err := r.w.Write(frame)
	return err
}

// ended says why nothing is read any more. The edge's own end is io.EOF.
func (r *registrar) ended() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if errors.Is(r.err, io.EOF) {
		return errors.New("the edge ended the registration")
	}
	return r.err
}

// handle takes one message from the edge.
func (r *registrar) handle(m *wire.Message) error {
	switch m.Kind {
	case wire.KindReturn:
		return r.answered(m)
	case wire.KindAbort:
		return m.Exception
	case wire.KindBootstrap, wire.KindCall:
		return r.send(wire.EncodeException(m.ID, wire.ExceptionError{Kind: wire.ExceptionUnimplemented, Reason: "nothing is offered here"}))
	default:
		return nil
	}
}

func (r *registrar) answered(m *wire.Message) error {
	if err := r.send(wire.Finish(m.ID)); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if m.ID == 0 {
		switch {
		case m.Exception != nil:
			return m.Exception
		case m.Capability == nil:
			return fmt.Errorf("%w: a bootstrap without its capability", wire.ErrMalformed)
		}
		r.target = wire.Target{ID: *m.Capability}
		return nil
	}
	if ch := r.waiting[m.ID]; ch != nil {
		delete(r.waiting, m.ID)
		ch <- m
	}
	return nil
}

// call makes a call and reads its results into out.
func (r *registrar) call(ctx context.Context, method uint16, in, out wire.Body) error {
	ch := make(chan *wire.Message, 1)
	r.mu.Lock()
	id := r.next
	r.next++
	r.waiting[id] = ch
	call := wire.Call{Question: id, Interface: wire.Registrar, Method: method, Target: r.target}
	r.mu.Unlock()
	if err := r.send(wire.EncodeCall(call, in)); err != nil {
		return err
	}
	select {
	case m := <-ch:
		if m.Exception != nil {
			return m.Exception
		}
		return m.Decode(out)
	case <-r.done:
		return r.ended()
	case <-ctx.Done():
		return ctx.Err()
	}
}
