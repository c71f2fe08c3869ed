//go:build peers

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// ssh is the client with the bench's configuration.
func (b *bench) ssh(args ...string) *exec.Cmd {
	return exec.Command("ssh", append([]string{"-F", b.config}, args...)...)
}

// must runs cmd and puts what it said into its error.
func must(cmd *exec.Cmd) error {
	var said bytes.Buffer
	if cmd.Stderr == nil {
		cmd.Stderr = &said
	}
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, said.Bytes())
	}
	return nil
}

// timed is how long cmd takes, in milliseconds.
func timed(cmd *exec.Cmd) (float64, error) {
	began := time.Now()
	err := must(cmd)
	return milliseconds(time.Since(began)), err
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// rate is MiB per second.
func rate(size int64, d time.Duration) float64 { return float64(size) / (1 << 20) / d.Seconds() }

// download reads a command's output. The clock starts when the command does.
func (b *bench) download(s *side) (float64, error) {
	size := b.size(1 << 30)
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return 0, err
	}
	defer func() { _ = null.Close() }()
	cmd := b.ssh(s.name, fmt.Sprintf("echo go >&2; exec head -c %d /dev/zero", size))
	cmd.Stdout = null
	return b.stream(cmd, size)
}

// upload feeds a command's input.
func (b *bench) upload(s *side) (float64, error) {
	from, err := os.Open(filepath.Join(b.dir, "stream"))
	if err != nil {
		return 0, err
	}
	defer func() { _ = from.Close() }()
	cmd := b.ssh(s.name, "echo go >&2; exec cat >/dev/null")
	cmd.Stdin = from
	return b.stream(cmd, b.size(1<<30))
}

// stream runs cmd and measures from its first line on stderr to its end.
func (b *bench) stream(cmd *exec.Cmd, size int64) (float64, error) {
	errs, err := cmd.StderrPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	line, err := bufio.NewReader(errs).ReadString('\n')
	began := time.Now()
	if waited := cmd.Wait(); err != nil || waited != nil {
		return 0, fmt.Errorf("%w: %w: %s", err, waited, line)
	}
	return rate(size, time.Since(began)), nil
}

// sftp runs one sftp command between two looks at the clock, which sftp itself takes.
func (b *bench) sftp(s *side, before, command string) (time.Duration, error) {
	cmd := exec.Command("sftp", "-q", "-F", b.config, "-b", "-", s.name)
	cmd.Stdin = strings.NewReader(before + "\n!date +%s%N\n" + command + "\n!date +%s%N\n")
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return 0, fmt.Errorf("sftp: %w: %s%s", err, out, said.Bytes())
	}
	var at []int64
	for line := range strings.Lines(string(out)) {
		if n, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64); err == nil {
			at = append(at, n)
		}
	}
	if len(at) != 2 {
		return 0, fmt.Errorf("sftp: no times in %s", out)
	}
	return time.Duration(at[1] - at[0]), nil
}

func (b *bench) sftpPut(s *side) (float64, error) {
	d, err := b.sftp(s, "-rm up", "put "+b.dir+"/big up")
	return rate(b.size(512<<20), d), err
}

func (b *bench) sftpGet(s *side) (float64, error) {
	d, err := b.sftp(s, "put "+b.dir+"/big up", "get up "+os.DevNull)
	return rate(b.size(512<<20), d), err
}

// sftpPutMany is the whole command, login included, as a person waits for it.
func (b *bench) sftpPutMany(s *side) (float64, error) {
	if err := b.clear(s); err != nil {
		return 0, err
	}
	cmd := exec.Command("sftp", "-q", "-F", b.config, "-b", "-", s.name)
	cmd.Stdin = strings.NewReader("put -r " + b.dir + "/many many\n")
	return timed(cmd)
}

func (b *bench) scpMany(s *side) (float64, error) {
	if err := b.clear(s); err != nil {
		return 0, err
	}
	return timed(exec.Command("scp", "-q", "-F", b.config, "-r", b.dir+"/many", s.name+":many"))
}

// rsync sends the small files and the large one.
func (b *bench) rsync(s *side) (float64, error) {
	if err := b.clear(s); err != nil {
		return 0, err
	}
	return timed(exec.Command("rsync", "-a", "-e", "ssh -F "+b.config, b.dir+"/many", b.dir+"/big", s.name+":"))
}

// clear removes what an earlier run left, and lets the disk settle.
func (b *bench) clear(s *side) error {
	return must(b.ssh(s.name, "rm -rf many big up; sync"))
}
