package container

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/berth-gpu/berth/container/agent"
	"github.com/docker/go-units"
	docker "github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"
)

// Labels beside those of box.go.
const (
	labelKept = "berth.kept" // on a workspace that outlives its links: its name
	labelTemp = "berth.temp" // on a container that is only looked into, never started
)

// What a box may use when the host did not say.
const (
	defaultSHM  = 1 << 30
	defaultPIDs = 4096
	defaultTmp  = 1 << 30
)

// setupCaps are what the agent needs to set its box up: the egress filter, the home's owner,
// and becoming the guest. It drops them for good before it serves.
var setupCaps = []string{"CHOWN", "NET_ADMIN", "SETGID", "SETPCAP", "SETUID"}

// rootCaps stay with the guest of a Root link: what apt and su need.
var rootCaps = []string{
	"CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "NET_BIND_SERVICE", "SETGID", "SETUID",
}

// place is what a box stands on: everything that request needs and a Spec does not say.
type place struct {
	State   string // LabelState
	Bin     string // on the host: the agent's directory
	Run     string // on the host: the link's run directory
	Network string // Docker's id of the link's network; "" with NoNet
	Volume  string // name of the workspace volume
	Files   []etc  // files of /etc that are laid over the image's
	Home    string // where it is mounted

	OwnLimits bool // leave the daemon's limits as they are where ours would be higher
}

// etc is a file on the host that covers one in the image.
type etc struct{ Source, Target string }

// boxName is the name of a link's container and network.
func boxName(link string) string { return "berth-" + link }

// volumeName is the name of a link's workspace.
func volumeName(s Spec) string {
	if s.Workspace != "" {
		return "berth-ws-" + s.Workspace
	}
	return boxName(s.Link)
}

// request turns what was asked for into Docker's create request. It is pure.
func request(s Spec, p place) client.ContainerCreateOptions {
	hostname := s.Hostname
	if hostname == "" {
		hostname = "berth"
	}
	return client.ContainerCreateOptions{
		Name: boxName(s.Link),
		Config: &docker.Config{
			Hostname:   hostname,
			User:       "0:0", // to set up; the agent becomes the guest before it serves
			WorkingDir: "/",
			Image:      s.Image,
			Entrypoint: []string{agent.BinDir + "/" + agentName},
			Cmd:        []string{},
			Env:        environment(s),
			Labels:     map[string]string{LabelLink: s.Link, LabelState: p.State},
			StopSignal: "SIGTERM",
			// The image's own check would run as whoever it likes, beside the agent.
			Healthcheck: &docker.HealthConfig{Test: []string{"NONE"}},
		},
		HostConfig: &docker.HostConfig{
			NetworkMode:    networkMode(s, p),
			RestartPolicy:  docker.RestartPolicy{Name: docker.RestartPolicyDisabled},
			LogConfig:      docker.LogConfig{Type: "json-file", Config: map[string]string{"max-size": "1m", "max-file": "1"}},
			CapDrop:        []string{"ALL"},
			CapAdd:         capabilities(s),
			SecurityOpt:    []string{"no-new-privileges:true"},
			IpcMode:        docker.IPCModePrivate,
			CgroupnsMode:   docker.CgroupnsModePrivate,
			OomScoreAdj:    500, // when the host runs out of memory, a guest goes before the gateway
			ReadonlyRootfs: !s.Writable,
			ShmSize:        shmSize(s),
			Tmpfs:          tmpfs(s),
			Runtime:        s.Runtime,
			Mounts:         mounts(s, p),
			Resources:      resources(s, p),
		},
	}
}

func networkMode(s Spec, p place) docker.NetworkMode {
	if s.Network == NoNet {
		return "none"
	}
	return docker.NetworkMode(p.Network)
}

func capabilities(s Spec) []string {
	caps := slices.Clone(setupCaps)
	if s.Root {
		caps = append(caps, rootCaps...)
	}
	if s.Network == NoNet {
		caps = slices.DeleteFunc(caps, func(c string) bool { return c == "NET_ADMIN" })
	}
	slices.Sort(caps)
	return slices.Compact(caps)
}

// environment is the box's on top of the image's. Later entries win.
func environment(s Spec) []string {
	var env []string
	if len(s.Devices) == 0 {
		// Whatever the image asks for, a link without a GPU gets none.
		env = append(env, "NVIDIA_VISIBLE_DEVICES=void")
	}
	return append(env, s.Env...)
}

func shmSize(s Spec) int64 {
	switch {
	case s.SHM > 0:
		return s.SHM
	case s.Memory > 0 && s.Memory/2 < defaultSHM:
		return s.Memory / 2
	}
	return defaultSHM
}

// tmpfs are the places that are writable though the root is not. What is in them counts as
// the box's memory; the cap keeps one of them from taking all of it.
func tmpfs(s Spec) map[string]string {
	size := int64(defaultTmp)
	if s.Memory > 0 {
		size = s.Memory / 4
	}
	options := fmt.Sprintf("rw,exec,nosuid,nodev,nr_inodes=1048576,size=%d", size)
	return map[string]string{
		"/tmp": options + ",mode=1777",
		"/run": options + ",mode=755",
	}
}

func mounts(s Spec, p place) []mount.Mount {
	list := []mount.Mount{
		readOnly(p.Bin, agent.BinDir),
		readOnly(p.Run, path.Dir(agent.ConfigPath)),
		{Type: mount.TypeVolume, Source: p.Volume, Target: p.Home},
	}
	for _, f := range p.Files {
		list = append(list, readOnly(f.Source, f.Target))
	}
	for _, m := range s.Mounts {
		one := readOnly(m.Source, path.Clean(m.Target))
		if m.Write {
			one.ReadOnly = false
			one.BindOptions.NonRecursive = false
		}
		list = append(list, one)
	}
	return list
}

// readOnly is a bind mount that is read-only all through. Docker before 25 leaves file
// systems that are mounted below the source writable, therefore they are left out.
func readOnly(source, target string) mount.Mount {
	return mount.Mount{
		Type: mount.TypeBind, Source: source, Target: target, ReadOnly: true,
		BindOptions: &mount.BindOptions{Propagation: mount.PropagationRPrivate, NonRecursive: true},
	}
}

func resources(s Spec, p place) docker.Resources {
	pids := s.PIDs
	if pids <= 0 {
		pids = defaultPIDs
	}
	r := docker.Resources{
		NanoCPUs:   int64(s.CPUs * 1e9),
		Memory:     s.Memory,
		MemorySwap: s.Memory, // equal: no swap on top
		PidsLimit:  &pids,
		Ulimits: []*docker.Ulimit{
			{Name: "core", Soft: 0, Hard: 0}, // the host's core handler is no business of a guest
		},
	}
	if !p.OwnLimits {
		r.Ulimits = append(r.Ulimits,
			&docker.Ulimit{Name: "memlock", Soft: -1, Hard: -1}, // pinned memory; it counts as the box's
			&docker.Ulimit{Name: "nofile", Soft: 65536, Hard: 1048576})
	}
	for _, d := range s.Devices {
		r.Devices = append(r.Devices, docker.DeviceMapping{
			PathOnHost: d, PathInContainer: d, CgroupPermissions: "rw",
		})
	}
	return r
}

// humanBytes is a size for people.
func humanBytes(n int64) string { return units.BytesSize(float64(n)) }

// pathOf finds PATH in an image's environment and puts the agent's directory last.
func pathOf(env []string) string {
	value := "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" // Docker's default
	for _, e := range env {
		if v, ok := strings.CutPrefix(e, "PATH="); ok && v != "" {
			value = v
		}
	}
	if slices.Contains(strings.Split(value, ":"), agent.BinDir) {
		return value
	}
	return value + ":" + agent.BinDir
}
