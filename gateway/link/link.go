package link

import "time"

// State is where a link stands in its life: open, claimed, ended.
type State string

// The states of a link. They only move forwards.
const (
	Open    State = "open"
	Claimed State = "claimed"
	Ended   State = "ended"
)

// Reason says why a link ended.
type Reason string

// The reasons for which a link ends.
const (
	Expired  Reason = "expired"  // not claimed in time, or its time was used up
	Revoked  Reason = "revoked"  // the host took it back
	Finished Reason = "finished" // the guest said that they are done
)

// Mount is one path of the host that the host named for this link.
type Mount struct {
	Source string `json:"source"`
	Target string `json:"target"`
	Write  bool   `json:"write,omitempty"`
}

// Terms are what the host grants with a link; they do not change after the link is made.
// (An extension moves the link's ClaimBy or EndsAt, not Terms.For.)
type Terms struct {
	Image     string        `json:"image"`
	GPU       string        `json:"gpu"`      // "none" until a GPU is reserved
	For       time.Duration `json:"for"`      // how long from the claim, in nanoseconds
	Sessions  int           `json:"sessions"` // simultaneous SSH connections
	CPUs      float64       `json:"cpus"`     // 0: no limit
	Memory    int64         `json:"memory"`   // bytes; 0: no limit
	SHM       int64         `json:"shm"`      // bytes of /dev/shm
	PIDs      int64         `json:"pids"`
	Network   string        `json:"network"` // internet, none or lan
	Mounts    []Mount       `json:"mounts,omitempty"`
	Workspace string        `json:"workspace,omitempty"` // name of a kept workspace; empty: it goes with the link
	Root      bool          `json:"root,omitempty"`
	Writable  bool          `json:"writable,omitempty"`
	Runtime   string        `json:"runtime,omitempty"`
	Approve   bool          `json:"approve,omitempty"`
	KeepFor   time.Duration `json:"keep_for,omitempty"` // how long a terminal waits for its guest; 0: until the link ends
}

// Link is one grant as the book knows it. It is a value: the store hands out copies.
type Link struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	State     State     `json:"state"`
	Reason    Reason    `json:"reason,omitempty"`
	Terms     Terms     `json:"terms"`
	Grants    []Grant   `json:"grants"` // the link's own token first, companions after it
	CreatedAt time.Time `json:"created_at"`
	ClaimBy   time.Time `json:"claim_by"`
	ClaimedAt time.Time `json:"claimed_at,omitzero"`
	EndsAt    time.Time `json:"ends_at,omitzero"` // zero until claimed
	EndedAt   time.Time `json:"ended_at,omitzero"`
	Approved  bool      `json:"approved,omitempty"` // the host lets the next claim through
	Cleaned   bool      `json:"cleaned,omitempty"`  // the receipt is written
}

// Grant is one token of a link and what it was bound to by its claim.
type Grant struct {
	Hash      Hash      `json:"hash"`
	ClaimedAt time.Time `json:"claimed_at,omitzero"`
	Guest     Guest     `json:"guest,omitzero"` // zero until claimed
}

// Guest is who claimed a grant: the key they proved, or nothing but the token.
type Guest struct {
	Key         []byte `json:"key,omitempty"`         // wire form, RFC 4253 section 6.6; empty: without a key
	Fingerprint string `json:"fingerprint,omitempty"` // SHA256:…, or "no key"
}
