package cloudflare

import (
	"bufio"
	"bytes"
	"crypto/sha1" //nolint:gosec // RFC 6455 wants it, and nothing rests on it
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Opcodes, RFC 6455 section 5.2.
const (
	opContinue = 0
	opText     = 1
	opBinary   = 2
	opClose    = 8
	opPing     = 9
	opPong     = 10
)

// Close codes, RFC 6455 section 7.4.1.
const (
	codeNormal   = 1000
	codeProtocol = 1002
)

const (
	maxControl = 125      // bytes of a control frame
	maxFrame   = 64 << 10 // bytes of a frame of ours
	byeTimeout = 2 * time.Second
)

var errFrame = errors.New("websocket: protocol error")

// socket is a WebSocket as a stream of bytes: message and frame borders mean nothing, text counts
// as binary. The client's end, with or without a close frame, is io.EOF.
type socket struct {
	net.Conn               // below the frames
	remote   net.Addr      // the guest's
	in       *bufio.Reader // small, for headers: larger payloads are read past it
	left     uint64        // bytes of the current frame that were not read
	mask     [maskRun]byte // the frame's key again and again, from the next byte on
	open     bool          // a message has begun and not ended
	over     bool          // the client has said goodbye

	write   sync.Mutex
	out     []byte
	goodbye bool // we have

	ping *time.Timer
	once sync.Once
}

// maskRun is how many bytes are unmasked at once; a multiple of the key's four.
const maskRun = 1024

// isWebSocket says whether a request asks for one.
func isWebSocket(r *http.Request) bool {
	return strings.EqualFold(r.Header.Get("Upgrade"), "websocket")
}

// acceptSocket answers a WebSocket request; if it returns an error the request has been refused.
func acceptSocket(w http.ResponseWriter, r *http.Request) (*socket, error) {
	key := r.Header.Get("Sec-Websocket-Key")
	raw, err := base64.StdEncoding.DecodeString(key)
	if r.Method != http.MethodGet || err != nil || len(raw) != 16 {
		http.Error(w, "not a WebSocket request", http.StatusBadRequest)
		return nil, errors.New("websocket: malformed request")
	}
	sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11")) //nolint:gosec // RFC 6455 wants it
	w.Header().Set("Upgrade", "websocket")
	w.Header().Set("Connection", "Upgrade")
	w.Header().Set("Sec-Websocket-Accept", base64.StdEncoding.EncodeToString(sum[:]))
	w.WriteHeader(http.StatusSwitchingProtocols)
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil, fmt.Errorf("websocket: %w", err)
	}
	ahead, _ := buffered.Reader.Peek(buffered.Reader.Buffered()) // no more than is there
	s := newSocket(conn, guestAddr(r))
	s.in.Reset(io.MultiReader(bytes.NewReader(ahead), conn))
	return s, nil
}

func newSocket(conn net.Conn, remote net.Addr) *socket {
	s := &socket{Conn: conn, remote: remote, in: bufio.NewReaderSize(conn, 4<<10)}
	s.schedule()
	return s
}

// schedule sets the next ping.
func (s *socket) schedule() {
	s.write.Lock()
	defer s.write.Unlock()
	if s.goodbye {
		return
	}
	s.ping = time.AfterFunc(webSocketPing, func() {
		if s.frame(opPing, nil) == nil {
			s.schedule()
		}
	})
}

// RemoteAddr implements net.Conn: the guest's address, as the edge gave it. The port is not known.
func (s *socket) RemoteAddr() net.Addr { return s.remote }

// Read implements net.Conn.
func (s *socket) Read(p []byte) (int, error) {
	for s.left == 0 {
		if s.over {
			return 0, io.EOF
		}
		if err := s.next(); err != nil {
			return 0, err
		}
	}
	if uint64(len(p)) > s.left {
		p = p[:s.left]
	}
	n, err := s.in.Read(p)
	s.unmask(p[:n])
	s.left -= uint64(n)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// unmask takes the key off the next bytes of the current frame.
func (s *socket) unmask(p []byte) {
	for len(p) >= maskRun {
		subtle.XORBytes(p, p[:maskRun], s.mask[:])
		p = p[maskRun:]
	}
	subtle.XORBytes(p, p, s.mask[:])
	if turn := len(p) & 3; turn != 0 {
		key := [4]byte(s.mask[turn:])
		s.setMask(key)
	}
}

func (s *socket) setMask(key [4]byte) {
	copy(s.mask[:], key[:])
	for n := 4; n < maskRun; n *= 2 {
		copy(s.mask[n:], s.mask[:n])
	}
}

// next reads frames up to the next one that carries bytes of the stream.
func (s *socket) next() error {
	var h [8]byte
	if _, err := io.ReadFull(s.in, h[:2]); err != nil {
		return err
	}
	final, op, length := h[0]&0x80 != 0, h[0]&15, uint64(h[1]&127)
	if h[0]&0x70 != 0 || h[1]&0x80 == 0 {
		return s.refuse("reserved bits or no mask")
	}
	if err := s.readLength(&length, h[:]); err != nil {
		return err
	}
	var key [4]byte
	if _, err := io.ReadFull(s.in, key[:]); err != nil {
		return unexpected(err)
	}
	switch {
	case op == opContinue && s.open, (op == opText || op == opBinary) && !s.open:
		s.open, s.left = !final, length
		s.setMask(key)
		return nil
	case op >= opClose && op <= opPong && final && length <= maxControl:
		return s.control(op, int(length), key)
	}
	return s.refuse(fmt.Sprintf("opcode %d", op))
}

func (s *socket) readLength(length *uint64, buf []byte) error {
	switch *length {
	case 126:
		if _, err := io.ReadFull(s.in, buf[:2]); err != nil {
			return unexpected(err)
		}
		*length = uint64(binary.BigEndian.Uint16(buf))
	case 127:
		if _, err := io.ReadFull(s.in, buf[:8]); err != nil {
			return unexpected(err)
		}
		*length = binary.BigEndian.Uint64(buf)
	}
	if *length>>63 != 0 {
		return s.refuse("a length beyond all bounds")
	}
	return nil
}

// control answers a control frame.
func (s *socket) control(op byte, length int, key [4]byte) error {
	body := make([]byte, length)
	if _, err := io.ReadFull(s.in, body); err != nil {
		return unexpected(err)
	}
	for i := range body {
		body[i] ^= key[i&3]
	}
	switch op {
	case opPing:
		return s.frame(opPong, body)
	case opClose:
		s.over = true
		_ = s.bye(body[:min(len(body), 2)])
	}
	return nil
}

// refuse ends the stream of a client that breaks the rules.
func (s *socket) refuse(why string) error {
	s.over = true
	_ = s.bye(binary.BigEndian.AppendUint16(nil, codeProtocol))
	return fmt.Errorf("%w: %s", errFrame, why)
}

// bye sends a close frame, once.
func (s *socket) bye(status []byte) error {
	_ = s.SetWriteDeadline(time.Now().Add(byeTimeout)) // also for a write that holds the lock
	s.write.Lock()
	said := s.goodbye
	s.goodbye = true
	s.ping.Stop()
	s.write.Unlock()
	if said {
		return nil
	}
	return s.frame(opClose, status)
}

// Write implements net.Conn.
func (s *socket) Write(p []byte) (int, error) {
	done := 0
	for done < len(p) {
		part := p[done:min(done+maxFrame, len(p))]
		if err := s.frame(opBinary, part); err != nil {
			return done, err
		}
		done += len(part)
	}
	return done, nil
}

// frame sends one frame in one write.
func (s *socket) frame(op byte, p []byte) error {
	s.write.Lock()
	defer s.write.Unlock()
	if s.goodbye && op != opClose {
		return net.ErrClosed
	}
	b := append(s.out[:0], 0x80|op)
	switch n := len(p); {
	case n <= maxControl:
		b = append(b, byte(n))
	case n < 1<<16:
		b = binary.BigEndian.AppendUint16(append(b, 126), uint16(n))
	default:
		b = binary.BigEndian.AppendUint64(append(b, 127), uint64(n))
	}
	b = append(b, p...)
	s.out = b
	_, err := s.Conn.Write(b)
	return err
}

// Close says goodbye and closes the stream. A write that hangs is given up after a moment.
func (s *socket) Close() error {
	var err error
	s.once.Do(func() {
		_ = s.bye(binary.BigEndian.AppendUint16(nil, codeNormal))
		err = s.Conn.Close()
	})
	return err
}

func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
