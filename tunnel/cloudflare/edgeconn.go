package cloudflare

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"runtime"

	"github.com/berth-gpu/berth/tunnel/internal/wire"
)

// edgeConn is one try of one connection to the edge, over either transport.
type edgeConn struct {
	t        *connector
	index    uint8
	attempts uint8 // that failed before
	protocol Protocol
	addr     string
	streams  *streams
	up       func(place string) // called once, when the edge has accepted it
}

// serve runs the connection until it ends: nil after an orderly goodbye. Cancelling ctx cuts it.
func (c *edgeConn) serve(ctx context.Context) error {
	if c.protocol == QUIC {
		return c.serveQUIC(ctx)
	}
	return c.serveH2(ctx)
}

// control registers the connection and stays until it is to end: nil when we said goodbye.
func (c *edgeConn) control(ctx context.Context, rw io.ReadWriteCloser, local net.Addr) error {
	reg := newRegistrar(rw)
	defer func() { // nothing may use the stream once this returns
		_ = rw.Close()
		<-reg.done
	}()
	var out wire.Outcome
	if err := c.call(ctx, reg, wire.MethodRegister, c.registration(local), &out); err != nil {
		return err
	}
	if out.Cause != "" {
		return &refusedError{cause: out.Cause, retry: out.Retry, after: out.RetryAfter}
	}
	c.up(out.Place)
	if c.index == 0 && !out.RemotelyManaged {
		conf := &wire.LocalConfig{JSON: []byte(`{"ingress":[{"service":"http_status:200"}],"warp-routing":{}}`)}
		if err := c.call(ctx, reg, wire.MethodLocalConfig, conf, &wire.Empty{}); err != nil {
			c.t.log.Debug("the dashboard was not informed", "cause", err)
		}
	}
	select {
	case <-c.t.drain:
		if err := c.call(ctx, reg, wire.MethodUnregister, &wire.Empty{}, &wire.Empty{}); err != nil {
			c.t.log.Debug("the edge did not hear our goodbye", "cause", err)
		}
		return nil
	case <-reg.done:
		return reg.ended()
	case <-ctx.Done():
		return errConnEnded
	}
}

func (c *edgeConn) call(ctx context.Context, reg *registrar, method uint16, in, out wire.Body) error {
	ctx, cancel := context.WithTimeout(ctx, registerTimeout)
	defer cancel()
	err := reg.call(ctx, method, in, out)
	if errors.Is(err, context.DeadlineExceeded) {
		return errors.New("the edge does not answer")
	}
	return err
}

// registration is who we are.
func (c *edgeConn) registration(local net.Addr) *wire.Registration {
	r := &wire.Registration{
		Account: c.t.creds.account, Secret: c.t.creds.secret, Tunnel: c.t.creds.tunnel[:], Index: c.index, Client: c.t.client[:],
		Features: features(), Version: c.t.version, Arch: runtime.GOOS + "_" + runtime.GOARCH, Attempts: c.attempts,
	}
	if ap, err := netip.ParseAddrPort(local.String()); err == nil && !ap.Addr().IsUnspecified() {
		r.LocalIP = ap.Addr().Unmap().AsSlice()
	}
	return r
}
