package tunneltest

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"regexp"
	"slices"
)

// Tunnel is one the edge knows.
type Tunnel struct {
	Account  string
	Secret   []byte
	ID       [16]byte
	Hostname string
}

// UUID is the tunnel's id as text.
func (t Tunnel) UUID() string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", t.ID[:4], t.ID[4:6], t.ID[6:8], t.ID[8:10], t.ID[10:])
}

// Token is what a person copies from the dashboard.
func (t Tunnel) Token() string {
	b, _ := json.Marshal(map[string]any{"a": t.Account, "s": t.Secret, "t": t.UUID()}) // cannot fail: texts only
	return base64.StdEncoding.EncodeToString(b)
}

// CredentialsFile is the content of the tunnel's credentials file.
func (t Tunnel) CredentialsFile() []byte {
	b, _ := json.Marshal(map[string]any{"AccountTag": t.Account, "TunnelSecret": t.Secret, "TunnelID": t.UUID()}) // cannot fail: texts only
	return b
}

// Tunnel is the one every edge begins with.
func (e *Edge) Tunnel() Tunnel { return e.first }

// AddTunnel makes a tunnel with fresh credentials.
func (e *Edge) AddTunnel(hostname string) Tunnel {
	t := Tunnel{Account: "account-of-the-test", Secret: make([]byte, 32), Hostname: hostname}
	_, _ = rand.Read(t.Secret) // never fails
	_, _ = rand.Read(t.ID[:])
	e.mu.Lock()
	defer e.mu.Unlock()
	e.tunnels[string(t.ID[:])] = t
	return t
}

// Revoke makes the edge refuse a tunnel's credentials from now on. Its connections stay.
func (e *Edge) Revoke(t Tunnel) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.tunnels, string(t.ID[:]))
}

var (
	versionForm = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z.+-]{0,63}$`)
	archForm    = regexp.MustCompile(`^[a-z0-9]+_[a-z0-9]+$`)
)

// inspect reports what no connector of the real edge would send.
func (e *Edge) inspect(r Registration) {
	check := func(ok bool, format string, args ...any) {
		if !ok {
			e.violate("registration: "+format, args...)
		}
	}
	check(len(r.Client) == 16 && r.Client[6]>>4 == 4 && r.Client[8]>>6 == 2, "client id %x is no random UUID", r.Client)
	check(slices.Contains(r.Features, "serialized_headers"), "features %q lack serialized_headers", r.Features)
	check(slices.Contains(r.Features, "allow_remote_config"), "features %q lack allow_remote_config", r.Features)
	check(versionForm.MatchString(r.Version), "version %q", r.Version)
	check(archForm.MatchString(r.Arch), "arch %q", r.Arch)
	check(len(r.LocalIP) == 0 || len(r.LocalIP) == net.IPv4len || len(r.LocalIP) == net.IPv6len, "local address of %d bytes", len(r.LocalIP))
	check(!r.Replace, "asks to replace a connection")
	check(r.Index < 4, "index %d", r.Index)
}

// decide is the edge's own answer to a registration. The caller holds mu.
func (e *Edge) decide(r Registration, c *Conn) Answer {
	t, known := e.tunnels[string(r.Tunnel)]
	if !known {
		return Answer{Cause: "Unauthorized: Tunnel not found"}
	}
	if t.Account != r.Account || !bytes.Equal(t.Secret, r.Secret) {
		return Answer{Cause: "Unauthorized: Invalid tunnel secret"}
	}
	first := r.Index == 0
	for _, other := range e.conns {
		o := other.Registration
		if !bytes.Equal(o.Tunnel, r.Tunnel) || !bytes.Equal(o.Client, r.Client) {
			continue
		}
		if o.Index == 0 {
			first = true
		}
		if other.Addr == c.Addr && o.Index != r.Index {
			return Answer{Cause: "EDUPCONN", Retry: true}
		}
	}
	if !first && !e.seenFirst(r) {
		e.violations = append(e.violations, fmt.Sprintf("index %d registered before index 0", r.Index))
	}
	id := make([]byte, 16)
	_, _ = rand.Read(id)
	return Answer{Connection: id, Place: "TST", RemotelyManaged: e.opts.Managed}
}

// seenFirst says whether the same connector ever asked for index 0. The caller holds mu.
func (e *Edge) seenFirst(r Registration) bool {
	return slices.ContainsFunc(e.regs, func(o Registration) bool { return o.Index == 0 && bytes.Equal(o.Client, r.Client) })
}
