package tunnel_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-gpu/berth/tunnel"
)

// scripted is a door that does what the test says.
type scripted struct {
	name  string
	lines []tunnel.Lines

	mu    sync.Mutex
	fail  error // Listen's answer; nil opens
	tries int
	ln    *pipeListener
}

func (d *scripted) Name() string { return d.name }

func (d *scripted) Listen(context.Context) (net.Listener, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.tries++
	if d.fail != nil {
		return nil, d.fail
	}
	d.ln = newPipeListener()
	return d.ln, nil
}

func (d *scripted) Lines(string) []tunnel.Lines { return d.lines }

func (d *scripted) Close() error { return nil }

func (d *scripted) now(fail error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fail = fail
}

func (d *scripted) tried() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.tries
}

func (d *scripted) listener() *pipeListener {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ln
}

// pipeListener hands out one end of what dial makes, until cut.
type pipeListener struct {
	conns chan net.Conn
	gone  chan struct{}
	once  sync.Once
	err   error
}

func newPipeListener() *pipeListener {
	return &pipeListener{conns: make(chan net.Conn), gone: make(chan struct{}), err: net.ErrClosed}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.gone:
		return nil, l.err
	}
}

func (l *pipeListener) cut(err error) {
	l.once.Do(func() { l.err = err; close(l.gone) })
}

func (l *pipeListener) Close() error   { l.cut(net.ErrClosed); return nil }
func (l *pipeListener) Addr() net.Addr { return &net.TCPAddr{} }

func (l *pipeListener) dial() net.Conn {
	near, far := net.Pipe()
	l.conns <- far
	return near
}

func keep(t *testing.T, list ...tunnel.Door) (*tunnel.Doors, *bytes.Buffer) {
	t.Helper()
	log := new(bytes.Buffer)
	d := &tunnel.Doors{Log: slog.New(slog.NewTextHandler(log, nil))}
	for _, door := range list {
		d.Add(door, nil)
	}
	d.Start(t.Context())
	t.Cleanup(d.Close)
	return d, log
}

func stateOf(t *testing.T, d *tunnel.Doors, name string) tunnel.Status {
	t.Helper()
	synctest.Wait()
	for _, st := range d.Status() {
		if st.Name == name {
			return st
		}
	}
	t.Fatalf("no door %s", name)
	return tunnel.Status{}
}

func TestDoorsFailAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		good := &scripted{name: "good", lines: []tunnel.Lines{{SSH: "ssh a-long-line"}}}
		bad := &scripted{name: "bad", fail: &tunnel.Error{Err: errors.New("no route"), Hint: "plug it in"}, lines: []tunnel.Lines{{SSH: "ssh x"}, {SSH: "ssh x y z"}}}
		d, log := keep(t, good, bad)
		d.Settled(t.Context())
		st := stateOf(t, d, "bad")
		if st.State != tunnel.Down || st.Why != "no route" || st.Hint != "plug it in" {
			t.Errorf("bad is %+v", st)
		}
		if st := stateOf(t, d, "good"); st.State != tunnel.Up || st.Why != "" {
			t.Errorf("good is %+v", st)
		}
		if ways := d.Lines("tok"); len(ways) != 1 || ways[0].Door != "good" {
			t.Errorf("ways are %+v", ways)
		}

		<-time.After(time.Hour) // it is tried all the time, less and less often, and the log stays short
		synctest.Wait()
		if n := bad.tried(); n < 40 || n > 130 {
			t.Errorf("tried %d times in an hour", n)
		}
		if n := strings.Count(log.String(), "no route"); n != 1 {
			t.Errorf("the log has it %d times:\n%s", n, log)
		}
		bad.now(nil)
		<-time.After(2 * time.Minute)
		if st := stateOf(t, d, "bad"); st.State != tunnel.Up {
			t.Errorf("bad is still %+v", st)
		}
		ways := d.Lines("tok")
		if len(ways) != 3 || ways[0].SSH != "ssh x" || ways[2].Door != "good" {
			t.Errorf("the shortest is not first: %+v", ways)
		}
		if n := good.tried(); n != 1 {
			t.Errorf("the good door was opened %d times", n)
		}
	})
}

func TestDoorsComeBackAfterACut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		door := &scripted{name: "relay"}
		d, log := keep(t, door)
		ln := d.Listeners()["relay"]
		for range 3 {
			synctest.Wait()
			guest := door.listener().dial()
			c, err := ln.Accept()
			if err != nil {
				t.Fatal(err)
			}
			go func() { _, _ = io.WriteString(guest, "hello") }()
			if _, err := io.ReadFull(c, make([]byte, 5)); err != nil {
				t.Fatal(err)
			}
			go func() { _, _ = io.ReadAll(guest) }()
			_, _ = io.WriteString(c, "hi")
			door.listener().cut(errors.New("the relay went away"))
			if st := stateOf(t, d, "relay"); st.State != tunnel.Connecting || st.Why != "the relay went away" {
				t.Errorf("after a cut it is %+v", st)
			}
			_ = guest.Close()
			<-time.After(10 * time.Second)
		}
		if st := stateOf(t, d, "relay"); st.State != tunnel.Up || st.In != 15 || st.Out != 6 {
			t.Errorf("it is %+v", st)
		}
		if !strings.Contains(log.String(), "the relay went away") {
			t.Errorf("the log does not say why:\n%s", log)
		}
	})
}

func TestDoorsFinal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		door := &scripted{name: "named", fail: &tunnel.Error{Err: errors.New("the token is wrong"), Final: true}}
		d, _ := keep(t, door)
		<-time.After(time.Hour)
		if st := stateOf(t, d, "named"); st.State != tunnel.Down || door.tried() != 1 {
			t.Errorf("it is %+v after %d tries", st, door.tried())
		}
	})
}

func TestDoorsClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		door := &scripted{name: "one"}
		d, _ := keep(t, door)
		ln := d.Listeners()["one"]
		synctest.Wait()
		_ = ln.Close() // the gateway takes no more: whoever comes is turned away, the door stays
		guest := door.listener().dial()
		if _, err := guest.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("a guest got in: %v", err)
		}
		if st := stateOf(t, d, "one"); st.State != tunnel.Up {
			t.Errorf("it is %+v", st)
		}
		door.listener().cut(net.ErrClosed)
		d.Close()
		if _, err := ln.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("accept after the end: %v", err)
		}
	})
}
