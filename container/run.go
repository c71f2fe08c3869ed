package container

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"

	"github.com/berth-gpu/berth/container/agent"
)

// undoLimit bounds the clean-up after a Run that failed, whose own context may have ended.
const undoLimit = 2 * time.Minute

// minFree is the free space below which nothing new is begun.
const minFree = 64 << 20

// Run makes the box of a link and returns when its agent is set up. Called again for the
// same link it returns the box that is there, started if need be. When it fails it leaves
// nothing behind that was not there before. Errors wrap ErrNoImage, ErrNoSpace,
// ErrNoSubnet, ErrConflict, ErrInvalid, ErrSetup or ErrUnavailable.
func (e *Engine) Run(ctx context.Context, s Spec) (Box, error) {
	if err := e.check(s); err != nil {
		return Box{}, fmt.Errorf("run box: %w", err)
	}
	defer e.lock(s.Link)()
	_, err := e.inspect(ctx, s.Link)
	if err == nil {
		return e.start(ctx, s.Link)
	}
	if !errors.Is(err, ErrNotFound) {
		return Box{}, fmt.Errorf("run box: %w", err)
	}
	box, err := e.build(ctx, s)
	if err != nil {
		return Box{}, fmt.Errorf("run box: %w", err)
	}
	return box, nil
}

// check refuses what can never work, before anything is made.
func (e *Engine) check(s Spec) error {
	switch {
	case !validLink.MatchString(s.Link):
		return fmt.Errorf("%w: link id %q", ErrInvalid, s.Link)
	case s.Workspace != "" && !validLink.MatchString(s.Workspace):
		return fmt.Errorf("%w: workspace name %q", ErrInvalid, s.Workspace)
	case s.Network != Internet && s.Network != LAN && s.Network != NoNet:
		return fmt.Errorf("%w: network %q", ErrInvalid, s.Network)
	}
	return e.checkMounts(s)
}

// build makes a box from nothing, and takes all of it away again if that fails.
func (e *Engine) build(ctx context.Context, s Spec) (_ Box, err error) {
	if err := e.checkSpace(ctx); err != nil {
		return Box{}, err
	}
	view, err := e.view(ctx, s.Image)
	if err != nil {
		return Box{}, err
	}
	fresh := false // the workspace is ours to remove
	defer func() {
		if err != nil {
			e.undo(ctx, s, fresh)
		}
	}()
	p := place{State: e.state, Bin: e.bin, Run: e.RunDir(s.Link)}
	if s.Network != NoNet {
		own, err := e.ensureNetwork(ctx, s.Link)
		if err != nil {
			return Box{}, err
		}
		p.Network = own.ID
	}
	if p.Volume, fresh, err = e.ensureWorkspace(ctx, s); err != nil {
		return Box{}, err
	}
	if err := e.furnish(s, view, &p); err != nil {
		return Box{}, err
	}
	return e.launch(ctx, s, p)
}

// launch creates and starts the container. A daemon that is itself limited (no
// CAP_SYS_RESOURCE, as in some virtual machines) cannot raise limits for others: then the box
// gets the daemon's own, and so do those after it.
func (e *Engine) launch(ctx context.Context, s Spec, p place) (Box, error) {
	p.OwnLimits = e.ownLimits.Load()
	if err := e.create(ctx, request(s, p)); err != nil {
		return Box{}, err
	}
	box, err := e.start(ctx, s.Link)
	if err == nil || p.OwnLimits || !strings.Contains(err.Error(), "setting rlimit") {
		return box, err
	}
	e.log.Warn("Docker cannot raise limits of open files and locked memory; boxes get its own", "cause", err)
	e.ownLimits.Store(true)
	if err := e.removeContainer(ctx, boxName(s.Link)); err != nil {
		return Box{}, err
	}
	return e.launch(ctx, s, p)
}

// create makes the container. Docker may report a failure and have made it all the same:
// then it is there under its name.
func (e *Engine) create(ctx context.Context, r client.ContainerCreateOptions) error {
	_, err := ask(ctx, op{"create container", slow}, func(ctx context.Context) (client.ContainerCreateResult, error) {
		return e.docker.ContainerCreate(ctx, r)
	})
	return err
}

// undo removes what a failed build has made. A workspace that was there before stays.
func (e *Engine) undo(ctx context.Context, s Spec, fresh bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoLimit)
	defer cancel()
	errs := []error{}
	if c, err := e.inspect(ctx, s.Link); err == nil {
		errs = append(errs, e.removeContainer(ctx, c.ID))
	}
	nets, err := e.networks(ctx, s.Link)
	errs = append(errs, err)
	for _, n := range nets {
		errs = append(errs, e.removeNetwork(ctx, n.ID))
	}
	if fresh {
		errs = append(errs, e.removeVolume(ctx, volumeName(s)))
	}
	for _, name := range runFiles {
		errs = append(errs, removeFile(filepath.Join(e.RunDir(s.Link), name)))
	}
	_ = os.Remove(e.RunDir(s.Link)) // stays while the gateway's socket is in it
	if err := errors.Join(errs...); err != nil {
		e.log.Warn("a failed start left something for the sweep", "link", s.Link, "cause", err)
	}
}

// runFiles are what furnish and limitNetwork write into the run directory.
var runFiles = []string{"config.json", "limits.json", "passwd", "group", "profile.sh"}

// furnish writes the files that a box sees, and notes them in p.
func (e *Engine) furnish(s Spec, view *imageView, p *place) error {
	if err := makeDir(p.Run); err != nil {
		return fmt.Errorf("make run directory: %w", spaceClass(err))
	}
	who, err := view.Users.pick(view.User, s.Root)
	if err != nil {
		return err
	}
	c := agent.Config{
		User: who.Name, UID: who.UID, GID: who.GID, Groups: view.Users.member(who),
		Root: s.Root, Network: string(s.Network),
	}
	who.Home, who.Shell = homeFor(who), view.shellFor(who)
	c.Home, c.Shell, p.Home = who.Home, who.Shell, who.Home
	merged := view.Users.merge(who)
	write := func(name, target, content string) {
		file := filepath.Join(p.Run, name)
		err = errors.Join(err, writeFile(file, []byte(content), 0o644))
		p.Files = append(p.Files, etc{file, target})
	}
	// Where the image has them right already they stay its own: a Root link's apt adds users.
	if merged.Passwd != view.Users.Passwd {
		write("passwd", "/etc/passwd", merged.Passwd)
	}
	if merged.Group != view.Users.Group {
		write("group", "/etc/group", merged.Group)
	}
	write("profile.sh", profilePath, profile(pathOf(view.Env), view.Env))
	if err != nil {
		return fmt.Errorf("write run directory: %w", spaceClass(err))
	}
	return e.writeJSON(s.Link, agent.ConfigPath, c)
}

// writeJSON writes a file that the agent reads.
func (e *Engine) writeJSON(link, name string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("write agent config: %w", err)
	}
	mode := fs.FileMode(0o644)
	if name == agent.LimitsPath {
		mode = 0o600
	}
	if err := writeFile(filepath.Join(e.RunDir(link), path.Base(name)), data, mode); err != nil {
		return fmt.Errorf("write agent config: %w", spaceClass(err))
	}
	return nil
}

// limitNetwork writes where the box may not go. It is done before each start, since the
// host's addresses and name servers change.
func (e *Engine) limitNetwork(ctx context.Context, link string) error {
	c, err := agent.LoadConfig(filepath.Join(e.RunDir(link), path.Base(agent.ConfigPath)))
	if err != nil || c.Network == string(NoNet) {
		return err
	}
	nets, err := e.networks(ctx, link)
	if err != nil {
		return err
	}
	var others []network.Network
	if c.Network == string(LAN) {
		if others, err = e.listNetworks(ctx, client.Filters{}); err != nil {
			return err
		}
	}
	l := agent.Limits{Resolvers: resolvers(resolvConfs)}
	if len(l.Resolvers) == 0 {
		// Docker's own fallback where the host names no server that a container can reach.
		l.Resolvers = []netip.Addr{netip.AddrFrom4([4]byte{8, 8, 8, 8}), netip.AddrFrom4([4]byte{8, 8, 4, 4})}
	}
	if l.Refuse, err = refused(Network(c.Network), first(nets), others); err != nil {
		return fmt.Errorf("read the host's addresses: %w", err)
	}
	return e.writeJSON(link, agent.LimitsPath, l)
}

func removeFile(name string) error {
	if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
