package container

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// sockets give whoever can write to them the whole host.
var sockets = []string{"/run/docker.sock", "/run/containerd/containerd.sock", "/run/podman/podman.sock", "/run/crio/crio.sock"}

// checkMounts refuses mounts that would hand the guest the host, or cover what is ours.
func (e *Engine) checkMounts(s Spec) error {
	secret := append(slices.Clone(sockets), e.dir, "/proc", "/sys", "/dev")
	if e.socket != "" {
		secret = append(secret, e.socket)
	}
	for _, m := range s.Mounts {
		source, err := filepath.EvalSymlinks(m.Source)
		if err != nil {
			return fmt.Errorf("%w: mount %s: %w", ErrInvalid, m.Source, err)
		}
		if !filepath.IsAbs(m.Source) {
			return fmt.Errorf("%w: mount %s: not an absolute path", ErrInvalid, m.Source)
		}
		for _, bad := range secret {
			real, err := filepath.EvalSymlinks(bad)
			if err != nil {
				real = bad
			}
			if within(real, source) || (within(source, real) && real != "/dev") {
				return fmt.Errorf("%w: mount %s: it would give the guest %s", ErrInvalid, m.Source, bad)
			}
		}
		if err := checkTarget(m.Target); err != nil {
			return err
		}
	}
	return nil
}

// checkTarget refuses places in the box that are not the host's to fill.
func checkTarget(target string) error {
	clean := path.Clean(target)
	if !path.IsAbs(target) || slices.Contains([]string{"/", "/etc", "/etc/passwd", "/etc/group", "/tmp", "/run"}, clean) {
		return fmt.Errorf("%w: mount target %q", ErrInvalid, target)
	}
	for _, ours := range []string{"/.berth", "/proc", "/sys", "/dev"} {
		if within(clean, ours) {
			return fmt.Errorf("%w: mount target %q", ErrInvalid, target)
		}
	}
	return nil
}

// within tells whether p is dir or below it.
func within(p, dir string) bool {
	return p == dir || strings.HasPrefix(p, strings.TrimSuffix(dir, "/")+"/")
}
