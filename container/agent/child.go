package agent

import (
	"errors"
	"fmt"
	"os"
	"path"
	"strings"
	"syscall"
)

// errNoShell is answered when a shell is wanted in an image that has none.
var errNoShell = errors.New("this image has no shell: name a program, as in ssh … /path/to/program")

// errNoCommand ends the answer for a program that is on no PATH, in a shell's words.
var errNoCommand = errors.New("command not found")

// child is one process that the gateway asked for.
type child struct {
	pid int
}

// command turns a Start into the program and its arguments. Like sshd it gives a command
// to the user's shell with -c, and starts a login shell where there is no command.
func (s *server) command(st *Start) (string, []string, error) {
	switch {
	case st.Mode == ModeSFTP:
		return s.self, []string{s.self, "sftp"}, nil
	case len(s.shell) == 0 && st.Command == "":
		return "", nil, errNoShell
	case len(s.shell) == 0:
		argv := strings.Fields(st.Command)
		if len(argv) == 0 {
			return "", nil, errNoShell
		}
		prog, err := lookPath(argv[0], s.path())
		return prog, argv, err
	case st.Command == "":
		argv := append([]string{"-" + path.Base(s.shell[0])}, s.shell[1:]...)
		return s.shell[0], argv, nil
	default:
		return s.shell[0], append(append([]string{}, s.shell...), "-c", st.Command), nil
	}
}

// lookPath finds prog on a PATH without the host's rules of os/exec.
func lookPath(prog, searchPath string) (string, error) {
	if strings.Contains(prog, "/") {
		return prog, nil
	}
	for _, dir := range strings.Split(searchPath, ":") {
		full := path.Join(dir, prog)
		if st, err := os.Stat(full); err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0 {
			return full, nil
		}
	}
	return "", fmt.Errorf("%s: %w", prog, errNoCommand)
}

// findShell returns the first shell that the image really has: the one of the passwd entry,
// bash, sh, or busybox's own; nil where there is none.
func findShell(passwd string) []string {
	for _, argv := range [][]string{{passwd}, {"/bin/bash"}, {"/bin/sh"}, {"/bin/busybox", "sh"}, {"/busybox", "sh"}} {
		st, err := os.Stat(argv[0])
		if argv[0] != "" && err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0 {
			return argv
		}
	}
	return nil
}

// start forks a child on files (its fd 0, 1, 2 …) and reports its end as OpExited.
func (s *server) start(st *Start, files []*os.File, o startOptions) (int, error) {
	prog, argv, err := s.command(st)
	if err != nil {
		return 0, err
	}
	fds := make([]uintptr, len(files))
	for i, f := range files {
		fds[i] = f.Fd()
	}
	attr := &syscall.ProcAttr{
		Dir:   s.dir(),
		Env:   s.environ(st),
		Files: fds,
		Sys:   &syscall.SysProcAttr{Setsid: true, Setctty: o.terminal},
	}
	fork := func() (int, error) { return syscall.ForkExec(prog, argv, attr) }
	pid, err := s.reaper.start(fork, o.done)
	if err != nil {
		return 0, fmt.Errorf("start %s: %w", path.Base(prog), err)
	}
	return pid, nil
}

type startOptions struct {
	terminal bool // fd 0 becomes the controlling terminal
	done     func(Exit)
}

// dir is where children start: the home, or / while that cannot be entered.
func (s *server) dir() string {
	if st, err := os.Stat(s.config.Home); err == nil && st.IsDir() {
		return s.config.Home
	}
	return "/"
}

// startExec starts a command on the three pipes that came with the request.
func (s *server) startExec(f *Frame) error {
	if len(f.Files) != 3 {
		return fmt.Errorf("%w: exec with %d descriptors", ErrFrame, len(f.Files))
	}
	return s.startPlain(f, f.Files)
}

// startSFTP starts our sftp server on the socket that came with the request.
func (s *server) startSFTP(f *Frame) error {
	if len(f.Files) != 1 {
		return fmt.Errorf("%w: sftp with %d descriptors", ErrFrame, len(f.Files))
	}
	return s.startPlain(f, []*os.File{f.Files[0], f.Files[0], os.Stderr})
}

func (s *server) startPlain(f *Frame, files []*os.File) error {
	defer closeAll(f.Files)
	id := f.ID
	s.mu.Lock()
	defer s.mu.Unlock()
	pid, err := s.start(f.Start, files, startOptions{done: func(e Exit) {
		s.forget(id)
		s.send(&Frame{Op: OpExited, ID: id, Exit: &e})
	}})
	if err != nil {
		return err
	}
	s.children[id] = &child{pid: pid}
	s.send(&Frame{Op: OpStarted, ID: id})
	return nil
}
