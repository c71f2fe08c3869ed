package gateway

import (
	"time"

	"github.com/berth-gpu/berth/container"
	"github.com/berth-gpu/berth/gateway/link"
)

// ShareRequest is what `berth share` asks for. Zero fields take the host's defaults.
type ShareRequest struct {
	Name  string        `json:"name,omitempty"`
	TTL   time.Duration `json:"ttl,omitempty"` // how long the link may stay unclaimed
	Terms link.Terms    `json:"terms"`
}

// ShareResult is a new link and every line that works right now. Token is shown here
// and never again.
type ShareResult struct {
	Link    LinkView   `json:"link"`
	Token   string     `json:"token"`
	Doors   []DoorView `json:"doors"`
	HostKey HostKey    `json:"host_key"`
}

// DoorView is one way in with the lines a guest types. Several may lead through one door.
type DoorView struct {
	Name string `json:"name"`
	Host string `json:"host"`
	Port int    `json:"port"`
	Via  string `json:"via,omitempty"` // the program a guest needs beside ssh
	SSH  string `json:"ssh"`
	SCP  string `json:"scp"`
	SFTP string `json:"sftp"`
}

// DoorState is how a door is.
type DoorState struct {
	Name     string    `json:"name"`
	State    string    `json:"state"` // connecting, up, down
	Why      string    `json:"why,omitempty"`
	Hint     string    `json:"hint,omitempty"`
	At       string    `json:"at,omitempty"` // where it leads
	Since    time.Time `json:"since"`
	BytesIn  int64     `json:"bytes_in"` // from guests, encrypted as they are
	BytesOut int64     `json:"bytes_out"`
}

// HostKey is what a guest may compare before they trust the gateway.
type HostKey struct {
	Type        string `json:"type"`        // ssh-ed25519
	Fingerprint string `json:"fingerprint"` // SHA256:…
	KnownHosts  string `json:"known_hosts"` // a line for ~/.ssh/known_hosts
}

// LinkView is a link as the host sees it: never a token, never a hash.
type LinkView struct {
	ID        string        `json:"id"`
	Name      string        `json:"name"`
	State     link.State    `json:"state"`
	Reason    link.Reason   `json:"reason,omitempty"`
	Image     string        `json:"image"`
	GPU       string        `json:"gpu"`
	CreatedAt time.Time     `json:"created_at"`
	ClaimBy   time.Time     `json:"claim_by"`
	ClaimedAt *time.Time    `json:"claimed_at"`        // null until claimed
	EndsAt    *time.Time    `json:"ends_at"`           // null until claimed
	Guest     string        `json:"guest"`             // fingerprint, "no key", or ""
	Container string        `json:"container"`         // starting, ready, stopped, failed: …, gone
	Pending   string        `json:"pending,omitempty"` // fingerprint waiting for approval
	Terms     link.Terms    `json:"terms"`
	Doors     []DoorState   `json:"doors"` // by which a guest may come
	Sessions  []SessionView `json:"sessions"`
}

// SessionView is one SSH connection of a link.
type SessionView struct {
	ID       string    `json:"id"`
	Since    time.Time `json:"since"`
	Address  string    `json:"address"`
	Door     string    `json:"door"`
	Key      string    `json:"key"` // fingerprint or "no key"
	Client   string    `json:"client"`
	Channels []string  `json:"channels"` // shell, exec, sftp …
	BytesIn  int64     `json:"bytes_in"` // from the guest
	BytesOut int64     `json:"bytes_out"`
}

// Receipt says what was cleaned after a link ended.
type Receipt struct {
	Link   string           `json:"link"`
	Name   string           `json:"name"`
	Ended  time.Time        `json:"ended"`
	Reason link.Reason      `json:"reason"`
	Items  []container.Item `json:"items"`
}

// Event is one line of the audit log. It never holds a token.
type Event struct {
	Time    time.Time `json:"time"`
	Event   string    `json:"event"` // link.made, link.claimed, session.opened …
	Link    string    `json:"link,omitempty"`
	Session string    `json:"session,omitempty"`
	Address string    `json:"address,omitempty"`
	Key     string    `json:"key,omitempty"`
	Detail  string    `json:"detail,omitempty"`
}
