package agent

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
)

// Where the container sees its Config and, during set-up, its Limits, read-only.
const (
	ConfigPath = "/.berth/run/config.json"
	LimitsPath = "/.berth/run/limits.json"
)

// SetUpLine is printed to standard error when set-up is complete; the gateway waits for it
// in the container's log.
const SetUpLine = "berth-agent: set up"

// Config tells the agent about its box. The gateway writes it, and the guest can read it.
type Config struct {
	User    string `json:"user"`
	UID     int    `json:"uid"`
	GID     int    `json:"gid"`
	Groups  []int  `json:"groups,omitempty"` // supplementary
	Home    string `json:"home"`
	Shell   string `json:"shell"` // as passwd names it; "" when the image has none
	Root    bool   `json:"root,omitempty"`
	Network string `json:"network"` // internet, lan or none
}

// Limits are the addresses that the egress filter is about. They are no business of the
// guest's: only Setup reads them, and the gateway takes the file away after that.
type Limits struct {
	Resolvers []netip.Addr   `json:"resolvers"` // name servers, reachable on port 53 only
	Refuse    []netip.Prefix `json:"refuse"`    // the host's own addresses and networks
}

// LoadConfig reads a Config.
func LoadConfig(path string) (Config, error) { return load[Config](path) }

// LoadLimits reads Limits.
func LoadLimits(path string) (Limits, error) { return load[Limits](path) }

func load[T any](path string) (T, error) {
	var v T
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, &v)
	}
	if err != nil {
		return v, fmt.Errorf("read agent config: %w", err)
	}
	return v, nil
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
