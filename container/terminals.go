package container

import (
	"context"

	"github.com/berth-gpu/berth/container/agent"
)

// maxTerminals bounds what is believed of an agent's list.
const maxTerminals = 1024

// Terminals lists the terminals that run in the container. What they are called is the guest's
// word.
func (a *Agent) Terminals(ctx context.Context) ([]agent.Terminal, error) {
	p := &Process{}
	if err := a.start(ctx, p, &agent.Frame{Op: agent.OpTerminals}); err != nil {
		return nil, err
	}
	p.forget()
	return p.terminals[:min(len(p.terminals), maxTerminals)], nil
}

// Watch looks at a terminal by its number, or at the newest for 0. Stream speaks the frames of
// agent.StreamReader: sizes and what the terminal shows.
func (a *Agent) Watch(ctx context.Context, number int) (*Process, error) {
	return a.stream(ctx, &agent.Frame{Op: agent.OpWatch, Terminal: number})
}

// Notice shows a line of ours on a terminal, or on all for 0, in a way that harms no full-screen
// program.
func (a *Agent) Notice(ctx context.Context, number int, text string) error {
	peer, err := a.wait(ctx)
	if err != nil {
		return err
	}
	return peer.send(&agent.Frame{Op: agent.OpNotice, Terminal: number, Text: text})
}

// Farewell has a terminal's stream end with a line of ours; the terminal goes on.
func (p *Process) Farewell(text string) error {
	return p.peer.send(&agent.Frame{Op: agent.OpFarewell, ID: p.id, Text: text})
}

// ID names the process in what the agent says of its terminals.
func (p *Process) ID() uint64 { return p.id }
