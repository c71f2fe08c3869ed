package agent

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// rootCaps stay with the guest of a Root link; the container room adds the same ones.
var rootCaps = []int{
	unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER, unix.CAP_FSETID,
	unix.CAP_KILL, unix.CAP_NET_BIND_SERVICE, unix.CAP_SETGID, unix.CAP_SETUID,
}

// Become ends the set-up: it gives up every right that it took, for good, and replaces this
// program with argv, run as the guest. It returns only if something failed; the process must
// then exit. SetUpLine is written last.
func Become(c Config, argv []string) error {
	// Capabilities and ids belong to a thread. This one does the exec, and the others, which
	// still have theirs, end with it.
	runtime.LockOSThread()
	var keep []int
	if c.Root {
		keep = rootCaps
	}
	steps := []struct {
		what string
		do   func() error
	}{
		{"forbid new privileges", func() error { return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }},
		{"limit capabilities", func() error { return limitBounding(keep) }},
		{"clear ambient capabilities", func() error {
			return unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
		}},
		{"set groups", func() error { return setGroups(c.Groups) }},
		{"set group", func() error { return setIDs(unix.SYS_SETRESGID, c.GID) }},
		{"set user", func() error { return setIDs(unix.SYS_SETRESUID, c.UID) }},
		{"drop capabilities", func() error { return setCaps(keep) }},
		{"check capabilities", func() error { return checkCaps(keep) }},
	}
	for _, s := range steps {
		if err := s.do(); err != nil {
			return fmt.Errorf("%s: %w", s.what, err)
		}
	}
	if !c.Root && (c.UID == 0 || unix.Getuid() == 0) {
		return fmt.Errorf("set user: still root")
	}
	unix.Umask(0o022)
	if _, err := os.Stderr.WriteString(SetUpLine + "\n"); err != nil {
		return fmt.Errorf("tell the gateway: %w", err)
	}
	env := os.Environ() //nolint:forbidigo // PID 1's environment is the image's ENV, which is passed on
	return fmt.Errorf("exec %s: %w", argv[0], unix.Exec(argv[0], argv, env))
}

// setIDs sets real, effective and saved id of this thread alone; the standard library would
// set them on all, of which some have no right to any more.
func setIDs(call uintptr, id int) error {
	if _, _, errno := unix.RawSyscall(call, uintptr(id), uintptr(id), uintptr(id)); errno != 0 {
		return errno
	}
	return nil
}

// setGroups replaces the supplementary groups of this thread.
func setGroups(groups []int) error {
	list := make([]uint32, len(groups)+1) // one more, so that there is a first element to point to
	for i, g := range groups {
		list[i] = uint32(g)
	}
	first := unsafe.Pointer(&list[0]) //nolint:gosec // setgroups(2) takes an array, and x/sys sets those of all threads
	_, _, errno := unix.RawSyscall(unix.SYS_SETGROUPS, uintptr(len(groups)), uintptr(first), 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// limitBounding drops what is not in keep from the bounding set: no exec can ever bring it back.
func limitBounding(keep []int) error {
	for c := 0; c <= unix.CAP_LAST_CAP+8; c++ { // a few more than we know, for newer kernels
		if slices.Contains(keep, c) {
			continue
		}
		err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(c), 0, 0, 0)
		if errors.Is(err, unix.EINVAL) {
			return nil // the kernel does not know this one
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// capMasks are keep as the two words of capget(2).
func capMasks(keep []int) [2]uint32 {
	var m [2]uint32
	for _, c := range keep {
		m[c/32] |= 1 << (c % 32)
	}
	return m
}

func setCaps(keep []int) error {
	m := capMasks(keep)
	h := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	d := [2]unix.CapUserData{
		{Effective: m[0], Permitted: m[0]},
		{Effective: m[1], Permitted: m[1]},
	}
	return unix.Capset(&h, &d[0])
}

// checkCaps reads back what the kernel made of it.
func checkCaps(keep []int) error {
	m := capMasks(keep)
	h := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var d [2]unix.CapUserData
	if err := unix.Capget(&h, &d[0]); err != nil {
		return err
	}
	for i := range d {
		if d[i].Permitted&^m[i] != 0 || d[i].Effective&^m[i] != 0 || d[i].Inheritable != 0 {
			return fmt.Errorf("some are left: %x %x", d[i].Permitted, d[i].Inheritable)
		}
	}
	return nil
}

// Harden makes this process opaque to the guest's: no ptrace, no memory, no descriptors to be
// taken, though both have one uid (PR_SET_DUMPABLE, prctl(2)). Children that exec are not
// affected.
func Harden() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("harden: %w", err)
	}
	v, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
	if err != nil || v != 0 {
		return fmt.Errorf("harden: still dumpable: %w", err)
	}
	return nil
}
