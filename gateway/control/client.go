package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"syscall"
	"time"

	"github.com/berth-gpu/berth/gateway"
)

// ErrNotRunning is returned when no gateway runs on the state directory.
var ErrNotRunning = errors.New("no gateway is running here")

// Client reaches the gateway that runs on a state directory.
type Client struct {
	Dir      string
	Progress func(line string) // hears what slow verbs are doing; may be nil

	picture func(gateway.Picture) error
}

// Share makes a link.
func (c *Client) Share(ctx context.Context, req gateway.ShareRequest) (gateway.ShareResult, error) {
	return call[gateway.ShareResult](ctx, c, "share", request{Share: &req})
}

// List returns every link.
func (c *Client) List(ctx context.Context) ([]gateway.LinkView, error) {
	return call[[]gateway.LinkView](ctx, c, "list", request{})
}

// Show returns one link.
func (c *Client) Show(ctx context.Context, ref string) (gateway.LinkView, error) {
	return call[gateway.LinkView](ctx, c, "show", request{Ref: ref})
}

// Revoke ends a link.
func (c *Client) Revoke(ctx context.Context, ref string) (gateway.LinkView, error) {
	return call[gateway.LinkView](ctx, c, "revoke", request{Ref: ref})
}

// Extend gives a link more time.
func (c *Client) Extend(ctx context.Context, ref string, by time.Duration) (gateway.LinkView, error) {
	return call[gateway.LinkView](ctx, c, "extend", request{Ref: ref, By: by})
}

// Kick closes the connections of a link, or one session, and returns how many.
func (c *Client) Kick(ctx context.Context, ref string) (int, error) {
	return call[int](ctx, c, "kick", request{Ref: ref})
}

// Approve lets a waiting guest in.
func (c *Client) Approve(ctx context.Context, ref string) (gateway.LinkView, error) {
	return call[gateway.LinkView](ctx, c, "approve", request{Ref: ref})
}

// Receipts returns what was cleaned, oldest first.
func (c *Client) Receipts(ctx context.Context) ([]gateway.Receipt, error) {
	return call[[]gateway.Receipt](ctx, c, "receipts", request{})
}

// Events returns the last n events of the audit log; all of them when n is 0.
func (c *Client) Events(ctx context.Context, n int) ([]gateway.Event, error) {
	return call[[]gateway.Event](ctx, c, "log", request{N: n})
}

// Doors returns how each door is.
func (c *Client) Doors(ctx context.Context) ([]gateway.DoorState, error) {
	return call[[]gateway.DoorState](ctx, c, "doors", request{})
}

// call does one verb and waits for its result.
func call[T any](ctx context.Context, c *Client, verb string, r request) (T, error) {
	var res T
	body, err := json.Marshal(r)
	if err != nil {
		return res, fmt.Errorf("%s: %w", verb, err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://berth/v1/"+verb, bytes.NewReader(body))
	if err != nil {
		return res, fmt.Errorf("%s: %w", verb, err)
	}
	tr := &http.Transport{DialContext: c.dial, DisableKeepAlives: true}
	defer tr.CloseIdleConnections()
	resp, err := (&http.Client{Transport: tr}).Do(req)
	switch {
	case errors.Is(err, ErrNotRunning):
		return res, fmt.Errorf("%s: %w", verb, ErrNotRunning)
	case err != nil:
		return res, fmt.Errorf("%s: ask the gateway: %w", verb, err)
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := c.read(resp.Body)
	if err != nil {
		return res, err
	}
	if err := json.Unmarshal(data, &res); err != nil {
		return res, fmt.Errorf("%s: read the answer: %w", verb, err)
	}
	return res, nil
}

// read passes progress on and returns the result.
func (c *Client) read(r io.Reader) (json.RawMessage, error) {
	dec := json.NewDecoder(r)
	for {
		var a answer
		if err := dec.Decode(&a); err != nil {
			if errors.Is(err, io.EOF) {
				err = errors.New("the gateway stopped before it answered")
			}
			return nil, fmt.Errorf("read the answer: %w", err)
		}
		switch {
		case a.Error != nil:
			return nil, a.Error
		case a.Result != nil:
			return a.Result, nil
		case a.Picture != nil && c.picture != nil:
			var p gateway.Picture
			if err := json.Unmarshal(a.Picture, &p); err != nil {
				return nil, fmt.Errorf("read a picture: %w", err)
			}
			if err := c.picture(p); err != nil {
				return nil, err
			}
		case c.Progress != nil:
			c.Progress(a.Progress)
		}
	}
}

func (c *Client) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	d, err := os.Open(c.Dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, ErrNotRunning
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = d.Close() }()
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", shortPath(d))
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return nil, ErrNotRunning
	}
	return conn, err
}
