package tunnel

import (
	"context"
	"net"
	"strconv"
)

// Door is one way in. A Doors keeps it open: it calls Listen again whenever the listener
// that it got has failed.
type Door interface {
	// Name says which door it is: direct, cloudflare, relay.
	Name() string
	// Listen opens the door and returns once guests can come through it. Connections carry
	// the guest's real address where the door knows it. Accept fails when the way is cut;
	// its error says why.
	Listen(ctx context.Context) (net.Listener, error)
	// Lines are what a guest with this token types now, the best way first; none while the
	// door is not open.
	Lines(token string) []Lines
	// Close closes the door; connections that came through it stay if they can.
	Close() error
}

// detailed is a Door that has more to say about itself, such as its address.
type detailed interface {
	Detail() string
}

// Lines are the commands that work through a door.
type Lines struct {
	Host string // as the guest's programs name it
	Port int
	Via  string // the program that the guest needs beside ssh; "" for none
	SSH  string
	SCP  string // of a file named FILE to the guest's home
	SFTP string
}

// plainLines are those of a door that any SSH client can use by itself.
func plainLines(token, host string, port int) Lines {
	l := Lines{Host: host, Port: port}
	at := token + "@" + host
	remote := token + "@" + bracket(host)
	if port == 22 {
		l.SSH, l.SCP, l.SFTP = "ssh "+at, "scp FILE "+remote+":", "sftp "+remote
		return l
	}
	p := strconv.Itoa(port)
	l.SSH, l.SCP, l.SFTP = "ssh -p "+p+" "+at, "scp -P "+p+" FILE "+remote+":", "sftp -P "+p+" "+remote
	return l
}

// bracket writes an IPv6 address as scp and sftp want it: a bare colon would end the host.
func bracket(host string) string {
	if ip := net.ParseIP(host); ip != nil && ip.To4() == nil {
		return "[" + host + "]"
	}
	return host
}

// Error is a failure of a door that a person can do something about.
type Error struct {
	Err   error
	Hint  string // what to do
	Final bool   // trying again cannot help
}

// Error is what failed.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
