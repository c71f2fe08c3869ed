package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Setup is the first thing that PID 1 does, while it is root with a few capabilities: it
// limits the network and gives the guest their home. It fails closed; no guest process is
// ever started in a box that is not set up. It may run again when the box is restarted.
func Setup(c Config) error {
	if err := limitNetwork(c.Network); err != nil {
		return fmt.Errorf("limit network: %w", err)
	}
	if err := makeHome(c); err != nil {
		return fmt.Errorf("make home: %w", err)
	}
	if err := makeRuntimeDir(c); err != nil {
		return fmt.Errorf("make runtime directory: %w", err)
	}
	return nil
}

// limitNetwork sets the egress filter of the link's kind of network.
func limitNetwork(network string) error {
	switch network {
	case "none":
		return nil // there is nothing but loopback
	case "internet", "lan":
	default:
		return fmt.Errorf("unknown network %q", network)
	}
	l, err := LoadLimits(LimitsPath)
	if err != nil {
		return err
	}
	return installFilter(network, l)
}

// makeRuntimeDir makes what XDG_RUNTIME_DIR points to on a usual system.
func makeRuntimeDir(c Config) error {
	dir := filepath.Join("/run/user", strconv.Itoa(c.UID))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return ignoreNotOwner(err) // there from before the restart
	}
	return os.Lchown(dir, c.UID, c.GID)
}

// ignoreNotOwner lets pass what is already the guest's: without FOWNER its mode is theirs.
func ignoreNotOwner(err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return nil
	}
	return err
}

// makeHome makes the guest the owner of their home. Where it was somebody else's, all in it
// changes hands: an image that made it as root, or a kept workspace under another uid. The
// home itself comes last, so that an interrupted run starts over. Nothing of the guest runs
// yet, so nobody can swap paths under us.
func makeHome(c Config) error {
	home, err := filepath.EvalSymlinks(c.Home)
	if err != nil {
		return err
	}
	mounts, err := mountPoints()
	if err != nil {
		return err
	}
	if !slices.Contains(mounts, home) {
		return fmt.Errorf("%s is not the workspace", home) // an image with odd links; chown nothing of its own
	}
	owner, err := ownerOf(home)
	if err != nil || owner == c.UID {
		return err
	}
	// Without DAC_OVERRIDE root reads only what is its own or open to all.
	if err := os.Lchown(home, 0, 0); err != nil {
		return err
	}
	if err := copySkel("/etc/skel", home); err != nil {
		return err
	}
	if err := chownTree(home, owners{c.UID, c.GID, mounts}); err != nil {
		return err
	}
	return os.Lchown(home, c.UID, c.GID)
}

func ownerOf(path string) (int, error) {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return 0, fmt.Errorf("stat %s: %w", path, err)
	}
	return int(st.Uid), nil
}

// owners is who gets a tree, and where it ends.
type owners struct {
	uid, gid int
	mounts   []string
}

// chownTree gives all that is below dir to its new owner. It does not follow links and stops
// at mounts: those are the host's files.
func chownTree(dir string, to owners) error {
	list, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, d := range list {
		path := filepath.Join(dir, d.Name())
		if slices.Contains(to.mounts, path) {
			continue
		}
		if d.IsDir() {
			if err := os.Lchown(path, 0, 0); err != nil {
				return err
			}
			if err := chownTree(path, to); err != nil && !errors.Is(err, fs.ErrPermission) {
				return err
			}
		}
		if err := os.Lchown(path, to.uid, to.gid); err != nil {
			return err
		}
	}
	return nil
}

// mountPoints lists where something is mounted, see proc_pid_mountinfo(5).
func mountPoints() ([]string, error) {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	var list []string
	for line := range strings.Lines(string(data)) {
		if f := strings.Fields(line); len(f) > 4 {
			list = append(list, unescape(f[4]))
		}
	}
	return list, nil
}

// unescape turns the kernel's \040 back into a space, and so on.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// copySkel fills an empty home with the image's template, as useradd would.
func copySkel(skel, home string) error {
	have, err := os.ReadDir(home)
	if err != nil || len(have) > 0 {
		return err
	}
	// A link could lead to a mount of the host's, which the guest may not be able to read.
	if real, err := filepath.EvalSymlinks(skel); err != nil || real != skel {
		return nil //nolint:nilerr // an image without one
	}
	list, err := os.ReadDir(skel)
	if err != nil {
		return nil //nolint:nilerr // one that we may not read
	}
	for _, d := range list {
		if !d.Type().IsRegular() {
			continue
		}
		data, err := os.ReadFile(filepath.Join(skel, d.Name()))
		if err != nil {
			continue
		}
		if err := os.WriteFile(filepath.Join(home, d.Name()), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}
