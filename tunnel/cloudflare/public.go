package cloudflare

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// publicCheck asks for the public hostname until this gateway answers there: a quick tunnel's name
// works only about a minute after it was given, and a named one may be routed elsewhere.
type publicCheck struct {
	door     *Door
	hostname string
	roots    *x509.CertPool  // of the public side; if nil, the system's
	first    <-chan struct{} // closed when the edge has accepted a connection
}

// How the check goes about it.
const (
	publicTimeout = 10 * time.Second
	publicEvery   = 2 * time.Second // at first
	publicSlowly  = 15 * time.Second
	publicHurry   = 2 * time.Minute // for so long the short interval is kept
)

// run returns when the hostname has answered, or with ctx.
func (p *publicCheck) run(ctx context.Context) {
	client := p.client()
	defer client.CloseIdleConnections()
	select {
	case <-p.first:
	case <-ctx.Done():
		return
	}
	began, every := time.Now(), publicEvery
	if p.door.Credentials == nil && p.door.Public == "" {
		pause(ctx, every) // a resolver that is asked for a new name too early remembers that there is none
	}
	for ; ctx.Err() == nil; pause(ctx, every) {
		if p.door.Status().Connections == 0 {
			continue // the edge itself is the trouble, and that is told elsewhere
		}
		err := p.ask(ctx, client)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > publicHurry {
			every = publicSlowly
		}
		var network net.Error
		blind := every == publicSlowly && errors.As(err, &network) // we may be unable to look, and guests not
		if err == nil || blind {
			p.door.answered(p.hostname, err)
		}
		if err == nil {
			return
		}
		p.door.unanswered(err)
	}
}

// client connects to the public side, where it is named with Door.Public there.
func (p *publicCheck) client() *http.Client {
	t := &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}, DisableKeepAlives: true}
	t.TLSClientConfig.RootCAs = p.roots
	if to := p.door.Public; to != "" {
		t.Proxy = nil
		t.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, to)
		}
	}
	return &http.Client{Transport: t, Timeout: publicTimeout, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

func (p *publicCheck) ask(ctx context.Context, client *http.Client) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodHead, "https://"+p.hostname+pathSSH, http.NoBody)
	if err != nil {
		return err
	}
	resp, err := client.Do(r)
	if err != nil {
		return err
	}
	_ = resp.Body.Close()
	switch id := resp.Header.Get(headerGateway); {
	case id == p.door.site.id:
		return nil
	case id != "":
		return fmt.Errorf("%w: another gateway answers at %s", ErrElsewhere, p.hostname)
	default:
		return fmt.Errorf("%w: https://%s answers %s", ErrElsewhere, p.hostname, resp.Status)
	}
}

// answered opens the door to guests. With an error the name could not be looked at from here.
func (d *Door) answered(hostname string, err error) {
	d.mu.Lock()
	was := d.state.Up
	d.state.Up = true
	if err == nil {
		d.state.Err = nil
	}
	d.mu.Unlock()
	switch {
	case was:
	case err != nil:
		d.Log.Warn("door is up, but its public name could not be looked at from here", "door", d.Name(), "hostname", hostname, "cause", err)
	default:
		d.Log.Info("door is up", "door", d.Name(), "hostname", hostname, "terms", Terms)
	}
}

func (d *Door) unanswered(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.state.Up {
		d.state.Err = err
	}
}
