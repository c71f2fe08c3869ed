//go:build peers

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
)

// measures are the rows of the table, with the goals of the design.
func measures() []measure {
	return []measure{
		{"download through exec", "MiB/s", 5, 2, goal{atLeast: 1.6}, (*bench).download},
		{"upload through exec", "MiB/s", 5, 2, goal{atLeast: 1.1}, (*bench).upload},
		{"sftp put", "MiB/s", 5, 2, goal{atLeast: 1.3}, (*bench).sftpPut},
		{"sftp get", "MiB/s", 5, 2, goal{atLeast: 1.1}, (*bench).sftpGet},
		{"scp -r, 2,000 files of 4 KiB", "ms", 5, 2, goal{atMost: 1}, (*bench).scpMany},
		{"sftp put -r, 2,000 files of 4 KiB", "ms", 5, 2, goal{atMost: 1}, (*bench).sftpPutMany},
		{"rsync -a, 2,000 of 4 KiB and one of 512 MiB", "ms", 5, 2, goal{}, (*bench).rsync},
		{"ssh x true", "ms", 15, 5, goal{atMost: 0.25}, func(b *bench, s *side) (float64, error) { return timed(b.ssh(s.name, "true")) }},
		{"exec on a warm connection, p50", "ms", 5, 2, goal{atMost: 0.6}, (*bench).warmExec},
		{"echo of a key, p50", "ms", 5, 2, goal{atMost: 1}, func(b *bench, s *side) (float64, error) { return b.echo(s, 50) }},
		{"echo of a key, p99", "ms", 5, 2, goal{}, func(b *bench, s *side) (float64, error) { return b.echo(s, 99) }},
		{"50 logins at once", "ms", 5, 2, goal{atMost: 0.2}, (*bench).logins},
		{"200 sessions with a command each", "ms", 3, 1, goal{}, func(b *bench, s *side) (float64, error) {
			took, _, err := b.sessions(s, 200, false)
			return took, err
		}},
		{"memory of an idle session, command", "KiB", 3, 1, goal{within: 64}, func(b *bench, s *side) (float64, error) {
			_, each, err := b.sessions(s, 200, false)
			return each, err
		}},
		{"memory of an idle session, terminal", "KiB", 3, 1, goal{}, func(b *bench, s *side) (float64, error) {
			_, each, err := b.sessions(s, 200, true)
			return each, err
		}},
		{"link to prompt, warm", "ms", 9, 3, goal{within: 100}, func(b *bench, s *side) (float64, error) { return b.prompt(s, false) }},
		{"link to prompt, cold", "ms", 9, 3, goal{within: 500}, func(b *bench, s *side) (float64, error) { return b.prompt(s, true) }},
	}
}

// warmExec is the median of many commands over one connection that is shared.
func (b *bench) warmExec(s *side) (float64, error) {
	socket := filepath.Join(b.dir, "mux-"+s.name)
	if err := must(b.ssh("-MNfS", socket, s.name)); err != nil {
		return 0, err
	}
	defer func() { _ = b.ssh("-S", socket, "-O", "exit", s.name).Run() }()
	var all []float64
	for range 40 {
		took, err := timed(b.ssh("-S", socket, s.name, "true"))
		if err != nil {
			return 0, err
		}
		all = append(all, took)
	}
	return median(all), nil
}

// echo types keys into a terminal, one after the other's echo.
func (b *bench) echo(s *side, percentile int) (float64, error) {
	cmd := b.ssh("-tt", s.name, "stty -icanon; echo; echo go; exec cat >/dev/null")
	in, err := cmd.StdinPipe()
	if err != nil {
		return 0, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	r := bufio.NewReader(out)
	for line := ""; line != "go\r\n"; {
		if line, err = r.ReadString('\n'); err != nil {
			return 0, err
		}
	}
	var all []float64
	for range 1000 {
		began := time.Now()
		if _, err := in.Write([]byte("x")); err != nil {
			return 0, err
		}
		if _, err := r.ReadByte(); err != nil {
			return 0, err
		}
		all = append(all, milliseconds(time.Since(began)))
	}
	slices.Sort(all)
	return all[len(all)*percentile/100], nil
}

// logins is how long fifty take that begin together.
func (b *bench) logins(s *side) (float64, error) {
	var all sync.WaitGroup
	failed := make([]error, 50)
	began := time.Now()
	for i := range failed {
		all.Go(func() { failed[i] = must(b.ssh(s.name, "true")) })
	}
	all.Wait()
	return milliseconds(time.Since(began)), errors.Join(failed...)
}

// sessions opens n connections, each with a command or a shell on a terminal, and returns
// how long it took and what each costs the server's programs while it is idle.
func (b *bench) sessions(s *side, n int, terminal bool) (took, each float64, err error) {
	config, err := b.client(s)
	if err != nil {
		return 0, 0, err
	}
	before, err := memory(s.programs())
	if err != nil {
		return 0, 0, err
	}
	clients := make([]*ssh.Client, n)
	defer func() {
		for _, c := range clients {
			if c != nil {
				_ = c.Close()
			}
		}
	}()
	failed := make([]error, n)
	room := make(chan struct{}, 32)
	var all sync.WaitGroup
	began := time.Now()
	for i := range clients {
		room <- struct{}{}
		all.Go(func() {
			clients[i], failed[i] = occupy(s.port, config, terminal)
			<-room
		})
	}
	all.Wait()
	took = milliseconds(time.Since(began))
	if err := errors.Join(failed...); err != nil {
		return 0, 0, err
	}
	after, err := memory(s.programs())
	return took, (after - before) / float64(n), err
}

// occupy opens one session and sees that it answers.
func occupy(port int, config *ssh.ClientConfig, terminal bool) (*ssh.Client, error) {
	c, err := ssh.Dial("tcp", "127.0.0.1:"+strconv.Itoa(port), config)
	if err != nil {
		return nil, err
	}
	sess, err := c.NewSession()
	if err != nil {
		return c, err
	}
	if terminal {
		if err := sess.RequestPty("xterm", 24, 80, nil); err != nil {
			return c, err
		}
	}
	in, err := sess.StdinPipe()
	if err != nil {
		return c, err
	}
	out, err := sess.StdoutPipe()
	if err != nil {
		return c, err
	}
	if err := sess.Start("exec cat"); err != nil {
		return c, err
	}
	if _, err := io.WriteString(in, "hello\n"); err != nil {
		return c, err
	}
	_, err = io.ReadFull(out, make([]byte, 6))
	return c, err
}

func (b *bench) client(s *side) (*ssh.ClientConfig, error) {
	text, err := os.ReadFile(filepath.Join(b.dir, "key"))
	if err != nil {
		return nil, err
	}
	key, err := ssh.ParsePrivateKey(text)
	if err != nil {
		return nil, err
	}
	return &ssh.ClientConfig{
		User: s.user, Auth: []ssh.AuthMethod{ssh.PublicKeys(key)}, HostKeyCallback: ssh.InsecureIgnoreHostKey(),
	}, nil
}

// prompt is how long a guest with a fresh link waits for their shell. Cold is from before
// there is a link; warm from when they have it.
func (b *bench) prompt(s *side, cold bool) (float64, error) {
	began := time.Now()
	to, end, err := s.link(cold)
	if err != nil {
		return 0, err
	}
	defer end()
	if !cold {
		began = time.Now()
	}
	cmd := b.ssh("-tt", "-o", "User="+to.user, "-p", strconv.Itoa(to.port), s.name)
	return promptOf(cmd, began)
}

func promptOf(cmd *exec.Cmd, began time.Time) (float64, error) {
	in, err := cmd.StdinPipe()
	if err != nil {
		return 0, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	var seen strings.Builder
	buf := make([]byte, 4096)
	for !strings.HasSuffix(seen.String(), "$ ") {
		n, err := out.Read(buf)
		seen.Write(buf[:n])
		if err != nil {
			return 0, fmt.Errorf("no prompt: %w: %q", err, seen.String())
		}
	}
	took := milliseconds(time.Since(began))
	_, _ = io.WriteString(in, "exit\n")
	_, _ = io.Copy(io.Discard, out)
	_ = cmd.Wait() // the status of a shell that was told to go says nothing here
	return took, nil
}
