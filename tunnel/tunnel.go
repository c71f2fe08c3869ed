package tunnel

import (
	"context"
	"net"
	"strconv"
)

// Door is one way in.
type Door interface {
	// Name says which door it is: direct, cloudflare, relay.
	Name() string
	// Listen opens the door. Connections carry the guest's real address.
	Listen(ctx context.Context) (net.Listener, error)
	// Lines are what a guest with this token types now; ok is false while the door is not open.
	Lines(token string) (lines Lines, ok bool)
	// Close closes the door; connections that came through it stay.
	Close() error
}

// Lines are the commands that work through a door.
type Lines struct {
	Host string // as the guest's programs name it
	Port int
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
