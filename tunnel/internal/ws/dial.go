package ws

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// DialOptions say how a WebSocket is opened.
type DialOptions struct {
	Client   *http.Client // its transport decides on proxies and certificates; no redirect is followed
	Header   http.Header
	Protocol string // offered; "" for none
}

// RefusedError is an answer other than 101.
type RefusedError struct {
	Status int
	Text   string // the start of the answer
}

// Error says what was answered.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("the server answered %d %s instead of opening a WebSocket", e.Status, http.StatusText(e.Status))
}

// Dial opens a WebSocket at url (https or http) and returns it with the subprotocol that the
// server agreed to. ctx bounds the opening, not the connection.
func Dial(ctx context.Context, url string, o DialOptions) (*Conn, string, error) {
	key := make([]byte, 16)
	_, _ = rand.Read(key) // never fails
	// The request's context lives as long as the connection in net/http: end it only if the
	// opening takes too long.
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, cancel)
	resp, err := o.request(life, url, base64.StdEncoding.EncodeToString(key))
	if !stop() && err == nil {
		_ = resp.Body.Close()
		err = ctx.Err()
	}
	if err != nil {
		cancel()
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, "", fmt.Errorf("open websocket: %w", err)
	}
	raw, err := check(resp, key, o.Protocol)
	if err != nil {
		_ = resp.Body.Close()
		cancel()
		return nil, "", err
	}
	return newConn(endWith{raw, cancel}, true, nil), resp.Header.Get("Sec-Websocket-Protocol"), nil
}

func (o DialOptions) request(ctx context.Context, url, key string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	for name, values := range o.Header {
		req.Header[name] = values
	}
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", "websocket")
	req.Header.Set("Sec-Websocket-Version", "13")
	req.Header.Set("Sec-Websocket-Key", key)
	if o.Protocol != "" {
		req.Header.Set("Sec-Websocket-Protocol", o.Protocol)
	}
	client := *o.Client
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return client.Do(req)
}

// check holds the answer to section 4.1 and returns the transport.
func check(resp *http.Response, key []byte, protocol string) (io.ReadWriteCloser, error) {
	if resp.StatusCode != http.StatusSwitchingProtocols {
		text, err := io.ReadAll(io.LimitReader(resp.Body, 512))
		if err != nil {
			text = nil
		}
		return nil, &RefusedError{Status: resp.StatusCode, Text: string(text)}
	}
	got := resp.Header.Get("Sec-Websocket-Protocol")
	switch {
	case !has(resp.Header, "Connection", "upgrade"), !has(resp.Header, "Upgrade", "websocket"),
		resp.Header.Get("Sec-Websocket-Accept") != answerTo(base64.StdEncoding.EncodeToString(key)),
		got != "" && got != protocol, resp.Header.Get("Sec-Websocket-Extensions") != "":
		return nil, fmt.Errorf("open websocket: %w", ErrProtocol)
	}
	raw, ok := resp.Body.(io.ReadWriteCloser)
	if !ok {
		return nil, errors.New("open websocket: this HTTP client cannot change protocols")
	}
	return raw, nil
}

// endWith ends the request's context with the connection.
type endWith struct {
	io.ReadWriteCloser
	cancel context.CancelFunc
}

// Close closes the transport.
func (e endWith) Close() error {
	defer e.cancel()
	return e.ReadWriteCloser.Close()
}
