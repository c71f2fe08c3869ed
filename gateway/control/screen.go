package control

import (
	"context"
	"net/http"

	"github.com/berth-gpu/berth/gateway"
)

// screen is the part of gateway.Server that the host's screen needs beyond the verbs.
type screen interface {
	Overview(ctx context.Context, o gateway.OverviewOptions) (gateway.Overview, error)
}

func (s *Server) handleScreen(mux *http.ServeMux) {
	handle(mux, "overview", func(ctx context.Context, r request) (any, error) { return s.Host.Overview(ctx, r.Overview) })
}

// Overview returns what the host's screen shows.
func (c *Client) Overview(ctx context.Context, o gateway.OverviewOptions) (gateway.Overview, error) {
	return call[gateway.Overview](ctx, c, "overview", request{Overview: o})
}
