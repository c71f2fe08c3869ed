package container

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/moby/moby/api/types/jsonstream"
	"github.com/moby/moby/client"
)

// DefaultImage is the guest image that Berth builds itself from the distribution's packages.
// It is in no registry and is never pulled.
const DefaultImage = "berth-guest:12"

// ImageOptions say which image must be there.
type ImageOptions struct {
	Ref      string            // as in `docker pull`; if empty, DefaultImage
	Progress func(line string) // hears about anything that takes long; if nil, nobody does
}

// stalled is how long a pull may stand still before it is given up.
const stalled = 5 * time.Minute

// ImagePresent tells whether Docker has the image.
func (e *Engine) ImagePresent(ctx context.Context, ref string) (bool, error) {
	_, err := ask(ctx, op{"inspect image", quick}, func(ctx context.Context) (client.ImageInspectResult, error) {
		return e.docker.ImageInspect(ctx, ref)
	})
	if errors.Is(err, ErrNotFound) || errors.Is(err, ErrNoImage) {
		return false, nil
	}
	return err == nil, err
}

// EnsureImage makes sure that an image is there: one that is present is left as it is, the
// default one is built, any other is pulled. Errors wrap ErrNoImage, ErrNoSpace or
// ErrUnavailable and say what to do.
func (e *Engine) EnsureImage(ctx context.Context, o ImageOptions) error {
	if o.Ref == "" {
		o.Ref = DefaultImage
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	there, err := e.ImagePresent(ctx, o.Ref)
	switch {
	case err != nil:
		return fmt.Errorf("ensure image %s: %w", o.Ref, err)
	case there:
	case o.Ref == DefaultImage:
		err = e.buildImage(ctx, o)
	default:
		err = e.pull(ctx, o)
	}
	if err != nil {
		return fmt.Errorf("ensure image %s: %w", o.Ref, err)
	}
	// Looking into it now keeps the first box from waiting for that.
	_, err = e.view(ctx, o.Ref)
	return err
}

// pull fetches an image from its registry. It may take hours, so only a standstill ends it.
func (e *Engine) pull(ctx context.Context, o ImageOptions) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	idle := time.AfterFunc(stalled, func() {
		cancel(fmt.Errorf("%w: nothing came for %s", ErrNoImage, stalled))
	})
	defer idle.Stop()
	o.Progress("pulling " + o.Ref)
	stream, err := e.docker.ImagePull(ctx, o.Ref, client.ImagePullOptions{})
	if err != nil {
		return pullError(ctx, err)
	}
	defer func() { _ = stream.Close() }()
	p := progress{now: e.now, say: o.Progress}
	for m, err := range stream.JSONMessages(ctx) {
		idle.Reset(stalled)
		if err == nil && m.Error != nil {
			err = m.Error
		}
		if err != nil {
			return pullError(ctx, err)
		}
		p.message(m)
	}
	return nil
}

// pullError says why an image could not be got, in the class that lets the host act on it.
func pullError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	switch class := classify(err); class {
	case ErrUnavailable, ErrNoSpace: //nolint:errorlint // classify returns the class itself
		return wrap("pull", err)
	}
	return fmt.Errorf("%w: %w", ErrNoImage, err)
}

// progress turns Docker's many messages into a line now and then.
type progress struct {
	now    func() time.Time
	say    func(string)
	last   time.Time
	layers map[string][2]int64 // by layer: bytes that came, bytes in all
}

// progressEvery is how often a line is due.
const progressEvery = 2 * time.Second

func (p *progress) message(m jsonstream.Message) {
	if p.layers == nil {
		p.layers = map[string][2]int64{}
	}
	if m.Progress != nil && m.Progress.Total > 0 && m.Status == "Downloading" {
		p.layers[m.ID] = [2]int64{m.Progress.Current, m.Progress.Total}
	}
	if l, ok := p.layers[m.ID]; ok && strings.HasPrefix(m.Status, "Download complete") {
		p.layers[m.ID] = [2]int64{l[1], l[1]}
	}
	if now := p.now(); now.Sub(p.last) >= progressEvery {
		p.last = now
		p.say(p.line(m))
	}
}

func (p *progress) line(m jsonstream.Message) string {
	var came, all int64
	for _, l := range p.layers {
		came, all = came+l[0], all+l[1]
	}
	status := strings.ToLower(m.Status)
	if all == 0 {
		return status
	}
	return fmt.Sprintf("%s, %s of %s", status, humanBytes(came), humanBytes(all))
}
