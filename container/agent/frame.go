package agent

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// MaxFrame bounds one control frame. It holds the longest command the kernel would
// start (MAX_ARG_STRLEN, execve(2), is 128 KiB) and its environment.
const MaxFrame = 1 << 20

// maxFiles is how many descriptors one frame may carry.
const maxFiles = 4

// Op says what a frame is about.
type Op string

// Frames from the gateway to the agent.
const (
	OpStart  Op = "start"  // begin Start; files: its streams
	OpSignal Op = "signal" // deliver Signal to the process group of ID
	OpDial   Op = "dial"   // connect to Dial inside the container; file: the stream
	OpReply  Op = "reply"  // the gateway's answer to OpCall
	OpListen Op = "listen" // listen on Dial inside the container
	OpClose  Op = "close"  // stop listening for ID
	OpTake   Op = "take"   // file: the stream for the accepted connection Conn; no file: turn it away
	OpPing   Op = "ping"

	OpTerminals Op = "terminals" // list the terminals
	OpWatch     Op = "watch"     // file: a stream of what Terminal shows, for the host
	OpNotice    Op = "notice"    // show Text on Terminal, or on all
	OpFarewell  Op = "farewell"  // show Text as the last that request ID gets
)

// Frames from the agent to the gateway.
const (
	OpHello    Op = "hello"    // first frame: Hello
	OpStarted  Op = "started"  // ID runs, or Error says why not
	OpExited   Op = "exited"   // ID ended with Exit
	OpCall     Op = "call"     // the guest's `berth` asks: Call
	OpAccepted Op = "accepted" // listener ID has a connection, number Conn, from Dial
	OpPong     Op = "pong"
)

// Frame is one control message. ID ties a request to its answers: the gateway counts up,
// and the agent's own calls count in a space of their own.
type Frame struct {
	Op     Op     `json:"op"`
	ID     uint64 `json:"id,omitempty"`
	Start  *Start `json:"start,omitempty"`
	Dial   *Dial  `json:"dial,omitempty"`
	Signal string `json:"signal,omitempty"` // RFC 4254 section 6.10 name, without SIG
	Hello  *Hello `json:"hello,omitempty"`
	Exit   *Exit  `json:"exit,omitempty"`
	Call   *Call  `json:"call,omitempty"`
	Reply  *Reply `json:"reply,omitempty"`
	Conn   uint64 `json:"conn,omitempty"`
	Error  string `json:"error,omitempty"`
	// Terminal is a terminal's number; in OpWatch 0 is the newest, in OpNotice all.
	Terminal  int        `json:"terminal,omitempty"`
	Terminals []Terminal `json:"terminals,omitempty"`
	Text      string     `json:"text,omitempty"`
	// Attached says that OpStarted continued a terminal instead of starting one.
	Attached bool `json:"attached,omitempty"`
	// NotFound says that OpStarted failed because there is no such program.
	NotFound bool       `json:"not_found,omitempty"`
	Files    []*os.File `json:"-"` // owned by whoever reads the frame
}

// Mode says how a child is started and what streams come with it.
type Mode string

// The modes of a child.
const (
	ModeExec     Mode = "exec"     // three pipes: stdin, stdout, stderr
	ModeTerminal Mode = "terminal" // one socket that speaks terminal frames, see terminal.go
	ModeSFTP     Mode = "sftp"     // one socket, the child's stdin and stdout
)

// Start asks for a child.
type Start struct {
	Mode    Mode     `json:"mode"`
	Command string   `json:"command,omitempty"` // given to the guest's shell; empty: a login shell
	Env     []string `json:"env,omitempty"`     // NAME=value, on top of the container's
	Term    string   `json:"term,omitempty"`    // terminal only
	Size    Size     `json:"size,omitzero"`     // terminal only
	Modes   []byte   `json:"modes,omitempty"`   // encoded terminal modes, RFC 4254 section 8
	Owner   string   `json:"owner,omitempty"`   // terminal only: a login returns to its own terminals
	Keep    int64    `json:"keep,omitempty"`    // terminal only: seconds it waits for its guest; 0: no end
	Lost    []uint64 `json:"lost,omitempty"`    // terminal only: requests whose client is gone though its connection is not
}

// Terminal describes one that runs. Command and Title are the guest's own words.
type Terminal struct {
	Number   int       `json:"number"`
	Command  string    `json:"command,omitempty"` // empty for a login shell
	Title    string    `json:"title,omitempty"`
	Size     Size      `json:"size"`
	Began    time.Time `json:"began"`
	Left     time.Time `json:"left,omitzero"`    // when the last guest left, if none is there
	Alt      bool      `json:"alt,omitempty"`    // a full-screen program is on
	Guests   []uint64  `json:"guests,omitempty"` // the requests that show it
	Watchers int       `json:"watchers,omitempty"`
}

// Size is a terminal's size in cells and pixels.
type Size struct {
	Cols, Rows, Width, Height uint16
}

// Dial asks for a connection inside the container's network.
type Dial struct {
	Network string `json:"network"` // tcp or unix
	Address string `json:"address"`
}

// Hello introduces an agent.
type Hello struct {
	Version   string `json:"version"`
	Shell     string `json:"shell"`               // "" when the image has none
	Filter    string `json:"filter"`              // how egress is limited, for the receipt
	Terminals int    `json:"terminals,omitempty"` // that still run from before
}

// Exit is how a child ended.
type Exit struct {
	Code   int    `json:"code"`
	Signal string `json:"signal,omitempty"` // RFC 4254 name when a signal ended it
	Core   bool   `json:"core,omitempty"`
}

// Call is a request of the guest's `berth` command.
type Call struct {
	Verb string `json:"verb"` // status, invite, done
}

// Reply answers a Call with lines for the guest's terminal.
type Reply struct {
	Text  string `json:"text,omitempty"`
	Error string `json:"error,omitempty"`
}

// ErrFrame is returned for a frame that cannot be one of ours; the connection is of no use after it.
var ErrFrame = errors.New("malformed agent frame")

// Conn sends and receives frames on one unix socket. Send may be called from one goroutine
// at a time, and so may Receive.
type Conn struct {
	Unix *net.UnixConn
	// AcceptFiles lets frames bring descriptors. Only the agent sets it: the gateway never takes one.
	AcceptFiles bool

	head [4]byte
}

// Send writes f with its files, which it closes in any case.
func (c *Conn) Send(f *Frame) error {
	defer closeAll(f.Files)
	body, err := json.Marshal(f)
	if err != nil {
		return fmt.Errorf("encode frame: %w", err)
	}
	if len(body) > MaxFrame {
		return fmt.Errorf("send %s: %w: %d bytes", f.Op, ErrFrame, len(body))
	}
	buf := make([]byte, 4, 4+len(body))
	binary.BigEndian.PutUint32(buf, uint32(len(body)))
	buf = append(buf, body...)
	var oob []byte
	if len(f.Files) > 0 {
		fds := make([]int, len(f.Files))
		for i, file := range f.Files {
			fds[i] = int(file.Fd())
		}
		oob = unix.UnixRights(fds...)
	}
	// The kernel attaches descriptors to the first byte, so a short write loses none of them.
	n, _, err := c.Unix.WriteMsgUnix(buf, oob, nil)
	if err != nil {
		return fmt.Errorf("send %s: %w", f.Op, err)
	}
	if n < len(buf) {
		_, err = c.Unix.Write(buf[n:])
	}
	return err
}

// Receive reads the next frame. Errors wrap ErrFrame when the peer broke the protocol.
func (c *Conn) Receive() (*Frame, error) {
	files, err := c.readHead()
	if err != nil {
		closeAll(files)
		return nil, err
	}
	if len(files) > 0 && !c.AcceptFiles {
		closeAll(files)
		return nil, fmt.Errorf("%w: descriptors from the agent", ErrFrame)
	}
	n := binary.BigEndian.Uint32(c.head[:])
	if n == 0 || n > MaxFrame {
		closeAll(files)
		return nil, fmt.Errorf("%w: length %d", ErrFrame, n)
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(c.Unix, body); err != nil {
		closeAll(files)
		return nil, fmt.Errorf("read frame: %w", err)
	}
	f := new(Frame)
	if err := json.Unmarshal(body, f); err != nil {
		closeAll(files)
		return nil, fmt.Errorf("%w: %w", ErrFrame, err)
	}
	f.Files = files
	return f, nil
}

// readHead reads the length and whatever descriptors came with it.
func (c *Conn) readHead() ([]*os.File, error) {
	oob := make([]byte, unix.CmsgSpace(maxFiles*4))
	n, oobn, _, _, err := c.Unix.ReadMsgUnix(c.head[:], oob)
	if err != nil {
		return nil, fmt.Errorf("read frame: %w", err)
	}
	if n == 0 {
		return nil, io.EOF
	}
	files, err := parseFiles(oob[:oobn])
	if err != nil {
		return files, err
	}
	if n < len(c.head) {
		if _, err := io.ReadFull(c.Unix, c.head[n:]); err != nil {
			return files, fmt.Errorf("read frame: %w", err)
		}
	}
	return files, nil
}

func parseFiles(oob []byte) ([]*os.File, error) {
	if len(oob) == 0 {
		return nil, nil
	}
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFrame, err)
	}
	var files []*os.File
	for i := range messages {
		fds, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			continue
		}
		for _, fd := range fds {
			unix.CloseOnExec(fd)
			files = append(files, os.NewFile(uintptr(fd), "passed"))
		}
	}
	return files, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}
