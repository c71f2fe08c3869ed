package container

import "time"

// Labels that mark everything Berth makes in Docker. LabelLink carries the link's id;
// LabelState the state directory's id, so that two gateways on one host never sweep each other.
const (
	LabelLink  = "berth.link"
	LabelState = "berth.state"
)

// Network says where a container's traffic may go.
type Network string

// The networks a link can ask for.
const (
	Internet Network = "internet" // the public internet and DNS; not the host, its LAN, other containers or metadata
	LAN      Network = "lan"      // the above and private ranges; still not the host nor metadata
	NoNet    Network = "none"     // loopback only
)

// Mount is a path of the host that the host named. Read-only unless Write.
type Mount struct {
	Source, Target string
	Write          bool
}

// Spec says what the box of one link is. It is plain data: request.go turns it into Docker's.
type Spec struct {
	Link      string // the link's id; names the container, network and workspace
	Hostname  string // what the guest sees as the machine's name; if empty, "berth"
	Image     string // must be present, see Engine.EnsureImage
	CPUs      float64
	Memory    int64 // bytes; 0: no limit
	SHM       int64 // bytes; 0: 1 GiB, or half of Memory where that is less
	PIDs      int64 // 0: 4096
	Network   Network
	Mounts    []Mount
	Workspace string // name of a kept workspace; empty: a volume that goes with the link
	Root      bool   // the guest is root inside, with the few capabilities apt and su need
	Writable  bool   // the root file system can be written
	Runtime   string // Docker runtime, "" for the daemon's default
	Devices   []string
	Env       []string // added to the image's, NAME=value
}

// Box is a container as Docker knows it.
type Box struct {
	Link    string
	ID      string // Docker's id
	PID     int    // of the agent, on the host; 0 when not running
	Running bool
	OOM     bool
	Image   string
	Created time.Time
}

// Item is one line of a receipt: something that was to be cleaned, and whether it is.
type Item struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
}
