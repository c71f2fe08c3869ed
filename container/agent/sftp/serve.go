package sftp

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Options say what to serve on.
type Options struct {
	In  io.Reader // requests
	Out io.Writer // answers
	Dir string    // absolute; where relative paths start
}

// server is one sftp conversation.
type server struct {
	dir     string
	in      *bufio.Reader
	out     io.Writer
	enc     encoder
	packet  []byte // the request at hand; reused
	handles handles
	names   names
}

// flushAt is how many bytes of answers are gathered at most before they leave.
const flushAt = maxPacket

// Serve answers requests until In ends. It returns an error when the conversation broke: In
// or Out failed, or the client sent what cannot be a packet.
func Serve(ctx context.Context, o Options) error {
	s := &server{dir: o.Dir, in: bufio.NewReaderSize(o.In, maxPacket+4), out: o.Out}
	s.enc.buf = make([]byte, 0, 2*maxPacket)
	defer s.handles.closeAll()
	for ctx.Err() == nil {
		kind, body, err := s.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = s.answer(kind, body)
		}
		if err == nil {
			err = s.flush()
		}
		if err != nil {
			return fmt.Errorf("serve sftp: %w", err)
		}
	}
	return ctx.Err()
}

// next reads one packet.
func (s *server) next() (byte, *decoder, error) {
	var head [4]byte
	if _, err := io.ReadFull(s.in, head[:]); err != nil {
		return 0, nil, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n < 1 || n > maxPacket {
		return 0, nil, fmt.Errorf("packet of %d bytes", n)
	}
	if cap(s.packet) < int(n) {
		s.packet = make([]byte, max(int(n), 64<<10))
	}
	s.packet = s.packet[:n]
	if _, err := io.ReadFull(s.in, s.packet); err != nil {
		return 0, nil, fmt.Errorf("packet cut short: %w", io.ErrUnexpectedEOF)
	}
	return s.packet[0], &decoder{buf: s.packet[1:]}, nil
}

// flush sends the answers once no whole request is waiting, or they have become many.
func (s *server) flush() error {
	if len(s.enc.buf) < flushAt && s.waiting() || len(s.enc.buf) == 0 {
		return nil
	}
	_, err := s.out.Write(s.enc.buf)
	s.enc.buf = s.enc.buf[:0]
	return err
}

// waiting reports whether a whole request is buffered, so that reading it waits for nothing.
func (s *server) waiting() bool {
	if s.in.Buffered() < 4 {
		return false
	}
	head, err := s.in.Peek(4)
	return err == nil && s.in.Buffered()-4 >= int(binary.BigEndian.Uint32(head))
}

// answer does one request. The error it returns is the conversation's; a request's own
// becomes a status.
func (s *server) answer(kind byte, d *decoder) error {
	if kind == typeInit {
		d.uint32() // the client's version: 3 is what we speak with any
		s.version()
		return d.err
	}
	id := d.uint32()
	if d.err != nil {
		return d.err
	}
	mark := len(s.enc.buf)
	err := s.do(kind, id, d)
	if err == nil && d.err != nil {
		err = d.err
	}
	if err != nil {
		s.enc.buf = s.enc.buf[:mark]
		s.status(id, err)
	}
	return nil
}

// do does one request and appends its answer; a request that has nothing to say but that it
// went well returns errNone.
func (s *server) do(kind byte, id uint32, d *decoder) error {
	switch kind {
	case typeOpen:
		return s.open(id, d)
	case typeClose:
		return ok(s.handles.close(d.string()))
	case typeRead:
		return s.read(id, d)
	case typeWrite:
		return ok(s.write(d))
	case typeOpendir:
		return s.opendir(id, d)
	case typeReaddir:
		return s.readdir(id, d)
	case typeExtended:
		return s.extended(id, d)
	case typeStat, typeLstat, typeFstat, typeSetstat, typeFsetstat:
		return s.attributes(kind, id, d)
	default:
		return s.paths(kind, id, d)
	}
}

// ok turns the success of a request without an answer of its own into its status.
func ok(err error) error {
	if err == nil {
		return errNone
	}
	return err
}

func (s *server) status(id uint32, err error) {
	code := statusOf(err)
	s.enc.begin(typeStatus, id)
	s.enc.uint32(uint32(code))
	s.enc.string(texts[code])
	s.enc.string("") // language
	s.enc.end()
}

func (s *server) version() {
	s.enc.begin(typeVersion, 3)
	for _, pair := range strings.Fields(extensions) {
		name, version, _ := strings.Cut(pair, "=")
		s.enc.string(name)
		s.enc.string(version)
	}
	s.enc.end()
}

// path is where a name of the client's points: relative ones start at the home directory.
func (s *server) path(name string) string {
	if strings.HasPrefix(name, "/") {
		return name
	}
	if name == "" {
		return s.dir
	}
	return s.dir + "/" + name
}
