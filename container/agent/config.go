package agent

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
)

// ConfigPath is where the container sees its Config, read-only.
const ConfigPath = "/.berth/run/config.json"

// SetUpLine is printed to standard error when set-up is complete; the gateway waits for it
// in the container's log.
const SetUpLine = "berth-agent: set up"

// Config tells the agent about its box. The gateway writes it; nothing in it is secret.
type Config struct {
	User   string `json:"user"`
	UID    int    `json:"uid"`
	GID    int    `json:"gid"`
	Groups []int  `json:"groups,omitempty"` // supplementary
	Home   string `json:"home"`
	Shell  string `json:"shell"` // as passwd names it; "" when the image has none
	Root   bool   `json:"root,omitempty"`

	Network   string         `json:"network"`             // internet, lan or none
	Resolvers []netip.Addr   `json:"resolvers,omitempty"` // name servers, reachable on port 53 only
	Refuse    []netip.Prefix `json:"refuse,omitempty"`    // the host's own addresses and networks
}

// LoadConfig reads a Config.
func LoadConfig(path string) (Config, error) {
	var c Config
	data, err := os.ReadFile(path)
	if err != nil {
		return c, fmt.Errorf("read agent config: %w", err)
	}
	if err := json.Unmarshal(data, &c); err != nil {
		return c, fmt.Errorf("read agent config: %w", err)
	}
	return c, nil
}

// Filter says in a few words how the box's traffic is limited, for the receipt.
func (c Config) Filter() string {
	switch c.Network {
	case "none":
		return "no network"
	case "lan":
		return "internet and private ranges; not the host, not metadata"
	}
	return "internet only; not the host, its network, other containers or metadata"
}
