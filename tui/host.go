package tui

import (
	"context"
	"time"

	"github.com/berth-gpu/berth/gateway"
)

// Host is what the screen asks of a gateway: gateway.Server and control.Client are both one.
type Host interface {
	looker
	changer
}

// looker is the part that only looks.
type looker interface {
	Overview(ctx context.Context, o gateway.OverviewOptions) (gateway.Overview, error)
	Receipts(ctx context.Context) ([]gateway.Receipt, error)
}

// changer is the part that acts.
type changer interface {
	Share(ctx context.Context, req gateway.ShareRequest) (gateway.ShareResult, error)
	Revoke(ctx context.Context, ref string) (gateway.LinkView, error)
	Extend(ctx context.Context, ref string, by time.Duration) (gateway.LinkView, error)
	Kick(ctx context.Context, ref string) (int, error)
	Approve(ctx context.Context, ref string) (gateway.LinkView, error)
}

// Card is one GPU as the screen draws it.
type Card struct {
	Index       int
	Name        string
	State       string // what is wrong with it; empty: nothing
	Known       bool   // Use is known: a card cut into slices does not say
	Use         float64
	Memory      int64
	MemoryAll   int64
	Temperature int    // in °C; 0: not known
	Power       int    // in W; 0: not known
	Holder      string // the id of the link that has it
}

// Screen is a guest's terminal as it is.
type Screen struct {
	Title            string
	Width, Height    int
	CursorX, CursorY int
	Hidden           bool     // the cursor
	Lines            []string // of Width columns each, with SGR sequences and no others
}
