package gateway

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	gossh "golang.org/x/crypto/ssh"
)

// serverVersion is our half of the version exchange, RFC 4253 section 4.2.
const (
	serverName    = "Berth"
	serverVersion = "SSH-2.0-" + serverName + "\r\n"
)

// helloTimeout is how long a client may take to say what it is.
const helloTimeout = 10 * time.Second

// Limits of a version line, RFC 4253 section 4.2, and of the first packet, section 6.1.
const (
	maxVersionLine = 255
	maxFirstPacket = 35000
)

// fastCiphers are several times quicker than the others, on our side and on the client's.
var fastCiphers = []string{gossh.CipherAES128GCM, gossh.CipherAES256GCM}

// ciphers are for clients that do not say more. chacha20-poly1305 is left out: most clients
// would prefer it, and Go computes it slowly.
var ciphers = append(slices.Clone(fastCiphers), gossh.CipherAES128CTR, gossh.CipherAES192CTR, gossh.CipherAES256CTR)

// hello exchanges versions and decides which ciphers to offer. By RFC 4253 section 7.1 the
// client's first choice wins, and OpenSSH puts chacha20 and, before 10, aes-ctr first: who has
// the fast ones too is offered nothing else. OpenSSH names its choices unasked, others may wait
// for ours. Everything that is read here is read again by the SSH library.
func (c *doorConn) hello() ([]string, error) {
	_ = c.SetDeadline(time.Now().Add(helloTimeout))
	defer func() { _ = c.SetDeadline(time.Time{}) }() // the handshake's own comes next
	if _, err := c.Write([]byte(serverVersion)); err != nil {
		return nil, fmt.Errorf("greet: %w", err)
	}
	c.greeted = true
	line, err := c.peekLine()
	if err != nil {
		return nil, fmt.Errorf("read version: %w", err)
	}
	if !strings.HasPrefix(line, "SSH-2.0-OpenSSH_") {
		return ciphers, nil
	}
	offer, err := c.peekCiphers(len(line))
	if err != nil {
		return nil, fmt.Errorf("read first packet: %w", err)
	}
	return choose(offer), nil
}

// choose picks what to offer to a client that has these.
func choose(offer []string) []string {
	has := func(names []string) bool {
		return slices.ContainsFunc(names, func(n string) bool { return slices.Contains(offer, n) })
	}
	switch {
	case has(fastCiphers):
		return fastCiphers
	case has(ciphers):
		return ciphers
	default:
		return append(slices.Clone(ciphers), gossh.CipherChaCha20Poly1305)
	}
}

// peekLine returns the client's version line with its end.
func (c *doorConn) peekLine() (string, error) {
	for len(c.seen) < maxVersionLine {
		b, err := c.peek(len(c.seen) + 1)
		if err != nil {
			return "", err
		}
		if i := bytes.IndexByte(b, '\n'); i >= 0 {
			return string(b[:i+1]), nil
		}
	}
	return "", errors.New("no version line")
}

// peekCiphers returns what the client offers in its SSH_MSG_KEXINIT, which begins at byte
// at; nothing if another message comes first.
func (c *doorConn) peekCiphers(at int) ([]string, error) {
	b, err := c.peek(at + 5)
	if err != nil {
		return nil, err
	}
	size, padding := binary.BigEndian.Uint32(b[at:]), int(b[at+4])
	if size > maxFirstPacket || int(size) < padding+2 {
		return nil, errors.New("not a packet")
	}
	if b, err = c.peek(at + 4 + int(size)); err != nil {
		return nil, err
	}
	var m struct {
		Cookie                  [16]byte `sshtype:"20"`
		Kex, HostKeys, Up, Down []string
		Rest                    []byte `ssh:"rest"`
	}
	_ = gossh.Unmarshal(b[at+5:at+4+int(size)-padding], &m) // another message leaves it empty
	return slices.DeleteFunc(m.Up, func(n string) bool { return !slices.Contains(m.Down, n) }), nil
}

// peek returns at least the first n bytes from the client; they stay to be read.
func (c *doorConn) peek(n int) ([]byte, error) {
	var buf [2 << 10]byte
	for len(c.seen) < n {
		m, err := c.receive(buf[:])
		c.seen = append(c.seen, buf[:m]...)
		if err != nil {
			return nil, err
		}
	}
	return c.seen, nil
}
