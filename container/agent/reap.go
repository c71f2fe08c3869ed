package agent

import (
	"os"
	"os/signal"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// reaper is the only place that waits for processes: the children we started and,
// since we are PID 1, every orphan of theirs. os/exec must not be used beside it: a
// wait4(-1) would steal the status that os/exec waits for.
type reaper struct {
	mu       sync.Mutex
	children map[int]func(Exit) // by pid; a pid is here from its start until it is reaped
}

func newReaper() *reaper {
	return &reaper{children: make(map[int]func(Exit))}
}

// run reaps until stop is closed.
func (r *reaper) run(stop <-chan struct{}) {
	sig := make(chan os.Signal, 1)
	signal.Notify(sig, syscall.SIGCHLD)
	defer signal.Stop(sig)
	for {
		r.reapAll()
		select {
		case <-sig:
		case <-stop:
			return
		}
	}
}

func (r *reaper) reapAll() {
	for {
		done, exit, ok := r.reapOne()
		if !ok {
			return
		}
		if done != nil {
			done(exit)
		}
	}
}

// reapOne takes one dead process. The lock is held across wait4, so that nobody signals
// a pid that the kernel has just given away.
func (r *reaper) reapOne() (func(Exit), Exit, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var ws syscall.WaitStatus
	for {
		pid, err := syscall.Wait4(-1, &ws, syscall.WNOHANG, nil)
		if err == syscall.EINTR {
			continue
		}
		if err != nil || pid <= 0 {
			return nil, Exit{}, false
		}
		done := r.children[pid]
		delete(r.children, pid)
		return done, exitOf(ws), true
	}
}

// start runs fork, which returns the pid of a new child, and registers done for its end,
// in one step: a child that is gone at once still finds its entry.
func (r *reaper) start(fork func() (int, error), done func(Exit)) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	pid, err := fork()
	if err != nil {
		return 0, err
	}
	r.children[pid] = done
	return pid, nil
}

// signal sends sig to the process group that pid leads, unless pid was reaped.
func (r *reaper) signal(pid int, sig syscall.Signal) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, alive := r.children[pid]; !alive {
		return syscall.ESRCH
	}
	return syscall.Kill(-pid, sig)
}

func exitOf(ws syscall.WaitStatus) Exit {
	if ws.Signaled() {
		return Exit{Code: 128 + int(ws.Signal()), Signal: signalName(ws.Signal()), Core: ws.CoreDump()}
	}
	return Exit{Code: ws.ExitStatus()}
}

// signalName returns sig's name without SIG, as RFC 4254 section 6.10 writes it. A signal
// that the RFC does not list gets its Linux name with an @, the RFC's form for extensions.
func signalName(sig syscall.Signal) string {
	name := unix.SignalName(sig)
	if len(name) > 3 {
		name = name[3:]
	}
	if !rfcSignals[name] {
		return name + "@linux"
	}
	return name
}

// rfcSignals are the names of RFC 4254 section 6.10.
var rfcSignals = map[string]bool{
	"ABRT": true, "ALRM": true, "FPE": true, "HUP": true, "ILL": true, "INT": true, "KILL": true,
	"PIPE": true, "QUIT": true, "SEGV": true, "TERM": true, "USR1": true, "USR2": true,
}

// signalNumber is the reverse: 0 for a name that Linux does not have.
func signalNumber(name string) syscall.Signal {
	return unix.SignalNum("SIG" + name)
}
