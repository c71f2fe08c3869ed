package cloudflare

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
)

// ErrToken means that a token or a credentials file is none.
var ErrToken = errors.New("not a tunnel token")

// Credentials are what the edge knows a named tunnel by. All of it is secret.
type Credentials struct {
	account  string
	secret   []byte
	tunnel   [16]byte
	endpoint string // a region, for some accounts
	token    string // as the official program wants it; empty if there was none
}

// LogValue keeps credentials out of logs.
func (Credentials) LogValue() slog.Value { return slog.StringValue("secret") }

// String keeps credentials out of errors.
func (Credentials) String() string { return "secret" }

// GoString keeps credentials out of debug output.
func (Credentials) GoString() string { return "secret" }

// ParseToken reads the token that the dashboard shows for a tunnel.
func ParseToken(text string) (Credentials, error) {
	text = strings.TrimSpace(text)
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return Credentials{}, fmt.Errorf("%w: it is no base64", ErrToken)
	}
	var t struct {
		A, T, E string
		S       []byte
	}
	if json.Unmarshal(raw, &t) != nil {
		return Credentials{}, fmt.Errorf("%w: what it holds cannot be read", ErrToken)
	}
	c, err := newCredentials(t.A, t.T, t.E, t.S)
	c.token = text
	return c, err
}

// ReadCredentials reads a file that holds a token or what `cloudflared tunnel create` wrote.
func ReadCredentials(path string) (Credentials, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return Credentials{}, fmt.Errorf("read tunnel credentials: %w", err)
	}
	var f struct {
		AccountTag, TunnelID, Endpoint string
		TunnelSecret                   []byte
	}
	if json.Unmarshal(data, &f) != nil {
		c, err := ParseToken(string(data))
		if err != nil {
			return c, fmt.Errorf("read tunnel credentials %s: %w", path, err)
		}
		return c, nil
	}
	c, err := newCredentials(f.AccountTag, f.TunnelID, f.Endpoint, f.TunnelSecret)
	if err != nil {
		return c, fmt.Errorf("read tunnel credentials %s: %w", path, err)
	}
	return c, nil
}

func newCredentials(account, tunnel, endpoint string, secret []byte) (Credentials, error) {
	id, err := hex.DecodeString(strings.ReplaceAll(tunnel, "-", ""))
	if err != nil || len(id) != 16 || account == "" || len(secret) == 0 {
		return Credentials{}, fmt.Errorf("%w: account, tunnel or secret is missing in it", ErrToken)
	}
	return Credentials{account: account, tunnel: [16]byte(id), endpoint: endpoint, secret: secret}, nil
}

// official is the token as the official program takes it.
func (c Credentials) official() string {
	if c.token != "" {
		return c.token
	}
	id := c.tunnel
	text := fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
	raw, _ := json.Marshal(map[string]any{"a": c.account, "s": c.secret, "t": text}) // texts and bytes: never fails
	return base64.StdEncoding.EncodeToString(raw)
}
