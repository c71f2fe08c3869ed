package agent

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// pty is the master side of a pseudo terminal in the container's own devpts.
type pty struct {
	*os.File
	slave *os.File
}

// openPTY opens a pair, pty(7). Both ends are ours until closeSlave.
func openPTY() (*pty, error) {
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("open /dev/ptmx: %w", err)
	}
	master := os.NewFile(uintptr(fd), "/dev/ptmx")
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		_ = master.Close()
		return nil, fmt.Errorf("unlock pty: %w", err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		_ = master.Close()
		return nil, fmt.Errorf("number of pty: %w", err)
	}
	name := "/dev/pts/" + strconv.Itoa(n)
	slave, err := os.OpenFile(name, os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		_ = master.Close()
		return nil, fmt.Errorf("open pty: %w", err)
	}
	return &pty{File: master, slave: slave}, nil
}

// resize tells the terminal's foreground processes a new size, by SIGWINCH.
func (p *pty) resize(s Size) error {
	return p.control(func(fd int) error {
		return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: s.Rows, Col: s.Cols, Xpixel: s.Width, Ypixel: s.Height})
	})
}

// control runs an ioctl without os.File.Fd, which would make the descriptor blocking.
func (p *pty) control(fn func(fd int) error) error {
	raw, err := p.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	if err := raw.Control(func(fd uintptr) { inner = fn(int(fd)) }); err != nil {
		return err
	}
	return inner
}

// tryWrite gives b to the programs as if it was typed, or drops it where they do not read.
func (p *pty) tryWrite(b []byte) {
	if raw, err := p.SyscallConn(); err == nil {
		_ = raw.Write(func(fd uintptr) bool { _, _ = unix.Write(int(fd), b); return true })
	}
}

// drain returns what the terminal still holds after its leader ended, without waiting for
// background jobs that keep it open. It returns io.EOF when there is nothing left.
func (p *pty) drain(b []byte) (int, error) {
	_ = p.SetReadDeadline(time.Time{})
	raw, err := p.SyscallConn()
	if err != nil {
		return 0, err
	}
	n, inner := 0, error(nil)
	err = raw.Read(func(fd uintptr) bool {
		n, inner = unix.Read(int(fd), b)
		return true
	})
	if err = errors.Join(err, inner); err != nil || n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// setModes applies encoded terminal modes, RFC 4254 section 8: opcode, uint32, … until 0.
// Opcodes that Linux does not have are skipped; an argument cut short ends the list.
func (p *pty) setModes(modes []byte) error {
	return p.control(func(fd int) error {
		t, err := unix.IoctlGetTermios(fd, unix.TCGETS)
		if err != nil {
			return err
		}
		for len(modes) >= 5 && modes[0] != 0 && modes[0] < 160 {
			setMode(t, modes[0], binary.BigEndian.Uint32(modes[1:]))
			modes = modes[5:]
		}
		return unix.IoctlSetTermios(fd, unix.TCSETS, t)
	})
}

// iutf8 is RFC 8160's opcode; UTF-8 is on unless the client says otherwise.
const iutf8 = 42

func setMode(t *unix.Termios, op byte, v uint32) {
	if i, ok := controlChars[op]; ok {
		t.Cc[i] = byte(v)
		if v == 255 { // RFC 4254 section 8: 255 means disabled
			t.Cc[i] = 0
		}
		return
	}
	f, ok := modeFlags[op]
	if !ok {
		return
	}
	word := map[byte]*uint32{'i': &t.Iflag, 'l': &t.Lflag, 'o': &t.Oflag, 'c': &t.Cflag}[f.word]
	*word &^= f.mask
	if v != 0 {
		*word |= f.bits
	}
}

type modeFlag struct {
	word       byte // i, l, o, c: the termios word
	mask, bits uint32
}

func flag(word byte, bit uint32) modeFlag { return modeFlag{word, bit, bit} }

// controlChars maps opcodes to the indices of termios' special characters.
var controlChars = map[byte]int{
	1: unix.VINTR, 2: unix.VQUIT, 3: unix.VERASE, 4: unix.VKILL, 5: unix.VEOF, 6: unix.VEOL, 7: unix.VEOL2,
	8: unix.VSTART, 9: unix.VSTOP, 10: unix.VSUSP, 12: unix.VREPRINT, 13: unix.VWERASE, 14: unix.VLNEXT, 18: unix.VDISCARD,
}

// modeFlags maps opcodes to termios' flags. CS7 and CS8 share one field.
var modeFlags = map[byte]modeFlag{
	30: flag('i', unix.IGNPAR), 31: flag('i', unix.PARMRK), 32: flag('i', unix.INPCK), 33: flag('i', unix.ISTRIP),
	34: flag('i', unix.INLCR), 35: flag('i', unix.IGNCR), 36: flag('i', unix.ICRNL), 37: flag('i', unix.IUCLC),
	38: flag('i', unix.IXON), 39: flag('i', unix.IXANY), 40: flag('i', unix.IXOFF), 41: flag('i', unix.IMAXBEL),
	iutf8: flag('i', unix.IUTF8),
	50:    flag('l', unix.ISIG), 51: flag('l', unix.ICANON), 52: flag('l', unix.XCASE), 53: flag('l', unix.ECHO),
	54: flag('l', unix.ECHOE), 55: flag('l', unix.ECHOK), 56: flag('l', unix.ECHONL), 57: flag('l', unix.NOFLSH),
	58: flag('l', unix.TOSTOP), 59: flag('l', unix.IEXTEN), 60: flag('l', unix.ECHOCTL), 61: flag('l', unix.ECHOKE),
	62: flag('l', unix.PENDIN),
	70: flag('o', unix.OPOST), 71: flag('o', unix.OLCUC), 72: flag('o', unix.ONLCR), 73: flag('o', unix.OCRNL),
	74: flag('o', unix.ONOCR), 75: flag('o', unix.ONLRET),
	90: {'c', unix.CSIZE, unix.CS7}, 91: {'c', unix.CSIZE, unix.CS8},
	92: flag('c', unix.PARENB), 93: flag('c', unix.PARODD),
}
