// Package scp speaks the old copy protocol for images that have no scp: what `scp -O` runs
// on the far side, `scp -t` to receive and `scp -f` to send, as OpenSSH's scp(1) does.
//
// A receiver takes no name that leads out of its directory (CVE-2018-20685 and the like);
// what may be read and written is the kernel's to say, for the guest's user.
package scp

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Streams are a process's own.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// Main runs one side of a copy and returns the exit code.
func Main(args []string, s Streams) int {
	o, err := parse(args)
	if err != nil {
		_, _ = fmt.Fprintln(s.Err, "scp:", err)
		return 1
	}
	c := &copier{options: o, in: bufio.NewReaderSize(s.In, 64<<10), out: bufio.NewWriterSize(s.Out, 64<<10), err: s.Err}
	if o.to {
		err = c.receive()
	} else {
		err = c.send()
	}
	if ferr := c.out.Flush(); err == nil {
		err = ferr
	}
	if err != nil {
		_, _ = fmt.Fprintln(s.Err, "scp:", err)
	}
	if err != nil || c.failed {
		return 1
	}
	return 0
}

// options are the flags of the far side, scp(1).
type options struct {
	to, from                 bool // -t, -f
	recursive, keep, intoDir bool // -r, -p, -d
	paths                    []string
}

func parse(args []string) (options, error) {
	var o options
	for len(args) > 0 && strings.HasPrefix(args[0], "-") && args[0] != "-" {
		flags := args[0][1:]
		args = args[1:]
		if flags == "-" {
			break
		}
		for _, f := range flags {
			switch f {
			case 't':
				o.to = true
			case 'f':
				o.from = true
			case 'r':
				o.recursive = true
			case 'p':
				o.keep = true
			case 'd':
				o.intoDir = true
			case 'v', 'q', 'B', 'C':
			default:
				return o, fmt.Errorf("unknown flag -%c", f)
			}
		}
	}
	o.paths = args
	switch {
	case o.to == o.from:
		return o, errors.New("this is the far side of a copy: your own scp starts it")
	case o.to && len(args) != 1, o.from && len(args) == 0:
		return o, errors.New("wrong number of paths")
	}
	return o, nil
}

// copier is one side of a copy.
type copier struct {
	options
	in     *bufio.Reader
	out    *bufio.Writer
	err    io.Writer
	failed bool // something was refused on the way; the rest was copied
}

// Answers of the protocol: fine, a warning after which the copy goes on, the end.
const (
	fine    = 0
	warning = 1
	fatal   = 2
)

// errPeer is an error that the other side reported; it has told its user already.
var errPeer = errors.New("the other side gave up")

// answer reads the other side's verdict on what was sent last.
func (c *copier) answer() (ok bool, err error) {
	if err := c.out.Flush(); err != nil {
		return false, err
	}
	b, err := c.in.ReadByte()
	if err != nil {
		return false, err
	}
	if b == fine {
		return true, nil
	}
	if _, err := c.line(); err != nil {
		return false, err
	}
	c.failed = true
	if b == warning {
		return false, nil
	}
	return false, errPeer
}

// accept tells the other side that all is well.
func (c *copier) accept() error {
	if err := c.out.WriteByte(fine); err != nil {
		return err
	}
	return c.out.Flush()
}

// warn tells both sides what could not be copied.
func (c *copier) warn(cause error) error {
	c.failed = true
	text := strings.ReplaceAll(cause.Error(), "\n", " ")
	if _, err := fmt.Fprintf(c.out, "%cscp: %s\n", warning, text); err != nil {
		return err
	}
	return c.out.Flush()
}

// maxLine bounds a control line: a mode, a size and a name.
const maxLine = 16 << 10

// line reads up to the end of a line, without it.
func (c *copier) line() (string, error) {
	var b strings.Builder
	for b.Len() < maxLine {
		ch, err := c.in.ReadByte()
		if err != nil {
			return "", err
		}
		if ch == '\n' {
			return b.String(), nil
		}
		b.WriteByte(ch)
	}
	return "", errors.New("protocol error: endless line")
}
