package agent

import (
	"errors"
	"net"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berth-gpu/berth/container/agent/screen"
)

// viewer is one attached session. Whoever has the terminal's own size gets the terminal's own
// bytes; the others are painted, so that a program's questions are answered once, and windows
// of different sizes show the same.
//
// A frame is written at once where the socket takes it. What it does not take is queued, and a
// goroutine writes it. All fields but the first three are the terminal's mu's.
type viewer struct {
	id   uint64 // of the request that attached it
	conn *net.UnixConn
	look bool // the host's: never waited for

	size     Size
	painted  bool
	painter  screen.Painter
	dirty    bool     // painted: something changed since
	timer    bool     // painted: a repaint is on its way
	last     int64    // painted: when it was painted, in nanoseconds
	queue    [][]byte // frames, the first perhaps begun
	queued   int      // bytes
	flushing bool
	stale    bool // frames were dropped: draw everything once there is room
	left     bool
}

const (
	// maxQueued is how much waits for a viewer before a program has to, or before frames are
	// dropped for one who is not waited for.
	maxQueued = 256 << 10
	// paintEvery bounds how often a painted viewer is drawn.
	paintEvery = 25 * time.Millisecond
)

// push sends a frame to v, or queues it. The caller holds t.mu, as for all below.
func (t *terminal) push(v *viewer, frame []byte) {
	switch {
	case v.left || len(frame) == 0 || v.stale:
		return
	case !v.flushing:
		n, err := writeNow(v.conn, frame)
		if err != nil {
			v.stale = true // its input sees the same end and takes it away
			return
		}
		if frame = frame[n:]; len(frame) == 0 {
			return
		}
		t.startFlush(v)
	case v.queued > maxQueued && (v.look || len(t.guests) > 1):
		v.queue, v.stale = v.queue[:1], true
		v.queued = len(v.queue[0])
		return
	}
	v.queue = append(v.queue, slices.Clone(frame))
	v.queued += len(frame)
}

// writeNow writes as much as c takes without waiting.
func writeNow(c *net.UnixConn, p []byte) (int, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	n, inner := 0, error(nil)
	err = raw.Write(func(fd uintptr) bool {
		n, inner = unix.Write(int(fd), p)
		return true
	})
	if err != nil {
		return 0, err
	}
	if errors.Is(inner, unix.EAGAIN) || errors.Is(inner, unix.EINTR) {
		return 0, nil
	}
	return max(n, 0), inner
}

func (t *terminal) startFlush(v *viewer) {
	v.flushing = true
	go t.server.guard("terminal queue", func() { t.flush(v) })
}

// flush writes v's queue until it is empty. It is called without t.mu.
func (t *terminal) flush(v *viewer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for !v.left {
		if len(v.queue) == 0 && v.stale {
			v.stale = false
			t.redraw(v)
		}
		if len(v.queue) == 0 {
			break
		}
		frame := v.queue[0]
		t.mu.Unlock()
		_, err := v.conn.Write(frame)
		t.mu.Lock()
		if len(v.queue) > 0 {
			v.queue = v.queue[1:]
			v.queued -= len(frame)
		}
		t.drained.Broadcast()
		if err != nil {
			v.stale = true
			break
		}
	}
	v.flushing = false
	t.drained.Broadcast()
	if v.painted && v.dirty {
		t.repaint(v)
	}
}

// redraw queues everything that v has to show.
func (t *terminal) redraw(v *viewer) {
	if v.painted {
		v.painter.Stale()
		v.dirty = true
		return
	}
	t.queueFrames(v, t.screen.Redraw(screen.RedrawOptions{}))
}

// queueFrames puts data into frames at the end of v's queue, whose goroutine writes them.
func (t *terminal) queueFrames(v *viewer, data []byte) {
	for chunk := range slices.Chunk(data, MaxStreamFrame) {
		frame := frameOf(chunk)
		v.queue = append(v.queue, frame)
		v.queued += len(frame)
	}
	if !v.flushing && len(v.queue) > 0 {
		t.startFlush(v)
	}
}

// repaint draws a painted viewer: at once if the last time is long enough ago, else soon.
func (t *terminal) repaint(v *viewer) {
	v.dirty = true
	if v.timer || v.flushing || v.left {
		return
	}
	now := time.Now().UnixNano()
	if wait := paintEvery - time.Duration(now-v.last); wait > 0 {
		v.timer = true
		t.later(wait, func() {
			v.timer = false
			if v.painted && v.dirty {
				t.repaint(v)
			}
		})
		return
	}
	v.dirty, v.last = false, now
	v.painter.Cols, v.painter.Rows = modelSize(v.size)
	t.queueFrames(v, v.painter.Paint(t.screen.View()))
}

// later runs fn with t.mu, after d.
func (t *terminal) later(d time.Duration, fn func()) {
	time.AfterFunc(d, func() {
		t.server.guard("terminal timer", func() {
			t.mu.Lock()
			defer t.mu.Unlock()
			fn()
		})
	})
}

// waitForRoom holds the program back while its only guest cannot take more: a slow reader slows
// the writer. With several guests nobody waits for the slowest.
func (t *terminal) waitForRoom() {
	for len(t.guests) == 1 && t.guests[0].queued > maxQueued && !t.guests[0].stale && !t.ended {
		t.drained.Wait()
	}
}

// finish returns when v has got everything, or is gone. It is called without t.mu.
func (t *terminal) finish(v *viewer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for !v.left && v.flushing {
		t.drained.Wait()
	}
}

// frameOf makes data frames of p.
func frameOf(p []byte) []byte {
	var out []byte
	for chunk := range slices.Chunk(p, MaxStreamFrame) {
		out = appendFrame(out, StreamData, chunk)
	}
	return out
}
