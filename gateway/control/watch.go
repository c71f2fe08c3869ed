package control

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/berth-gpu/berth/gateway"
)

// terminals is the part of gateway.Server that looks at guests' terminals.
type terminals interface {
	Terminals(ctx context.Context, ref string) ([]gateway.TerminalView, error)
	Watch(ctx context.Context, req gateway.WatchRequest, show func(gateway.Picture) error) error
}

func (s *Server) handleTerminals(mux *http.ServeMux) {
	handle(mux, "terminals", func(ctx context.Context, r request) (any, error) { return s.Host.Terminals(ctx, r.Ref) })
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	handleLines(mux, "watch", func(reqCtx context.Context, r request, out *lines) (any, error) {
		reqCtx, cancel := context.WithCancel(reqCtx)
		defer cancel()
		defer context.AfterFunc(ctx, cancel)()
		return s.watch(reqCtx, r, out)
	})
}

// watch sends pictures until the terminal ends, the client goes, or the gateway stops.
func (s *Server) watch(ctx context.Context, r request, out *lines) (any, error) {
	if r.Watch == nil {
		return nil, errors.New("watch: nothing was asked for")
	}
	err := s.Host.Watch(ctx, *r.Watch, func(p gateway.Picture) error {
		data, err := json.Marshal(p)
		if err == nil {
			out.send(answer{Picture: data})
		}
		return err
	})
	return struct{}{}, err
}

// Terminals lists the terminals of a link or a session.
func (c *Client) Terminals(ctx context.Context, ref string) ([]gateway.TerminalView, error) {
	return call[[]gateway.TerminalView](ctx, c, "terminals", request{Ref: ref})
}

// Watch hands show a picture of a terminal now and whenever it changes, until ctx ends or the
// terminal does. An error of show ends it too, and is returned.
func (c *Client) Watch(ctx context.Context, req gateway.WatchRequest, show func(gateway.Picture) error) error {
	w := &Client{Dir: c.Dir, picture: show}
	_, err := call[struct{}](ctx, w, "watch", request{Watch: &req})
	return err
}
