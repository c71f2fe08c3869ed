package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berth-gpu/berth/gateway"
)

// Host is what the socket serves: gateway.Server.
type Host interface {
	links
	reports
	screen
	terminals
}

// links is the part of gateway.Server that makes and changes links.
type links interface {
	Share(ctx context.Context, req gateway.ShareRequest) (gateway.ShareResult, error)
	Revoke(ctx context.Context, ref string) (gateway.LinkView, error)
	Extend(ctx context.Context, ref string, by time.Duration) (gateway.LinkView, error)
	Kick(ctx context.Context, ref string) (int, error)
	Approve(ctx context.Context, ref string) (gateway.LinkView, error)
}

// reports is the part of gateway.Server that only looks.
type reports interface {
	List(ctx context.Context) ([]gateway.LinkView, error)
	Show(ctx context.Context, ref string) (gateway.LinkView, error)
	Receipts(ctx context.Context) ([]gateway.Receipt, error)
	Events(ctx context.Context, n int) ([]gateway.Event, error)
	ListDoors(ctx context.Context) ([]gateway.DoorState, error)
}

// maxRequest bounds what a client may send.
const maxRequest = 1 << 20

// Server serves a Host on the socket of a state directory.
type Server struct {
	Dir  string
	Host Host

	http *http.Server
	stop context.CancelFunc // ends what would go on for as long as its client likes
}

// Listen makes the socket, for its owner alone. Whoever calls it holds the state directory's
// lock, so a socket that is there already is a leftover.
func (s *Server) Listen() (net.Listener, error) {
	d, err := os.Open(s.Dir)
	if err != nil {
		return nil, fmt.Errorf("listen for control: %w", err)
	}
	defer func() { _ = d.Close() }()
	full := filepath.Join(s.Dir, SocketName)
	if err := os.Remove(full); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("listen for control: %w", err)
	}
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: shortPath(d), Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("listen for control: %w", err)
	}
	ln.SetUnlinkOnClose(false) // the short name is gone by then; Close removes the file
	if err := os.Chmod(full, 0o600); err != nil {
		_ = ln.Close()
		return nil, fmt.Errorf("listen for control: %w", err)
	}
	return ownerListener{ln}, nil
}

// shortPath names the socket through the open directory, however long its path is: sun_path,
// unix(7), holds 108 bytes.
func shortPath(d *os.File) string {
	return "/proc/self/fd/" + strconv.FormatUint(uint64(d.Fd()), 10) + "/" + SocketName
}

// Serve answers until Close.
func (s *Server) Serve(ln net.Listener) error {
	mux := http.NewServeMux()
	handle(mux, "share", func(ctx context.Context, r request) (any, error) {
		if r.Share == nil {
			return nil, errors.New("share: nothing was asked for")
		}
		return s.Host.Share(ctx, *r.Share)
	})
	handle(mux, "list", func(ctx context.Context, _ request) (any, error) { return s.Host.List(ctx) })
	handle(mux, "show", func(ctx context.Context, r request) (any, error) { return s.Host.Show(ctx, r.Ref) })
	handle(mux, "revoke", func(ctx context.Context, r request) (any, error) { return s.Host.Revoke(ctx, r.Ref) })
	handle(mux, "extend", func(ctx context.Context, r request) (any, error) { return s.Host.Extend(ctx, r.Ref, r.By) })
	handle(mux, "kick", func(ctx context.Context, r request) (any, error) { return s.Host.Kick(ctx, r.Ref) })
	handle(mux, "approve", func(ctx context.Context, r request) (any, error) { return s.Host.Approve(ctx, r.Ref) })
	handle(mux, "receipts", func(ctx context.Context, _ request) (any, error) { return s.Host.Receipts(ctx) })
	handle(mux, "log", func(ctx context.Context, r request) (any, error) { return s.Host.Events(ctx, r.N) })
	handle(mux, "doors", func(ctx context.Context, _ request) (any, error) { return s.Host.ListDoors(ctx) })
	s.handleScreen(mux)
	s.handleTerminals(mux)
	s.http = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	if err := s.http.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve control: %w", err)
	}
	return nil
}

// Close stops serving, after the answers that are under way or when ctx ends, and removes
// the socket.
func (s *Server) Close(ctx context.Context) error {
	var err error
	if s.http != nil {
		s.stop()
		err = s.http.Shutdown(ctx)
	}
	return errors.Join(err, os.Remove(filepath.Join(s.Dir, SocketName)))
}

// handle serves one verb.
func handle(mux *http.ServeMux, verb string, do func(context.Context, request) (any, error)) {
	handleLines(mux, verb, func(ctx context.Context, r request, _ *lines) (any, error) { return do(ctx, r) })
}

// handleLines serves a verb that answers with more than a result.
func handleLines(mux *http.ServeMux, verb string, do func(context.Context, request, *lines) (any, error)) {
	mux.HandleFunc("POST /v1/"+verb, func(w http.ResponseWriter, r *http.Request) {
		out := &lines{w: w, enc: json.NewEncoder(w)}
		var req request
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRequest)).Decode(&req); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			out.send(answer{Error: &Error{Text: "malformed request: " + err.Error()}})
			return
		}
		ctx := gateway.WithProgress(r.Context(), func(line string) { out.send(answer{Progress: line}) })
		res, err := do(ctx, req, out)
		if err != nil {
			out.send(answer{Error: errorOf(err)})
			return
		}
		data, err := json.Marshal(res)
		if err != nil {
			out.send(answer{Error: &Error{Text: "encode answer: " + err.Error()}})
			return
		}
		out.send(answer{Result: data})
	})
}

// lines writes answers, each at once: progress is of no use later.
type lines struct {
	mu  sync.Mutex
	w   http.ResponseWriter
	enc *json.Encoder
}

func (l *lines) send(a answer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.enc.Encode(a) == nil {
		if f, ok := l.w.(http.Flusher); ok {
			f.Flush()
		}
	}
}

// ownerListener drops connections of other users; root may do as it likes anyway.
type ownerListener struct{ *net.UnixListener }

// Accept returns the next connection of the socket's owner or of root.
func (l ownerListener) Accept() (net.Conn, error) {
	for {
		c, err := l.AcceptUnix()
		if err != nil {
			return nil, err
		}
		if uid, err := peerUID(c); err == nil && (uid == 0 || uid == os.Geteuid()) {
			return c, nil
		}
		_ = c.Close()
	}
}

func peerUID(c *net.UnixConn) (int, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Ucred
	var inner error
	err = raw.Control(func(fd uintptr) {
		cred, inner = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err = errors.Join(err, inner); err != nil {
		return 0, err
	}
	return int(cred.Uid), nil
}
