package container

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
)

// account is one line of passwd(5).
type account struct {
	Name        string
	UID, GID    int
	Gecos       string
	Home, Shell string
}

func (a account) String() string {
	return fmt.Sprintf("%s:x:%d:%d:%s:%s:%s", a.Name, a.UID, a.GID, a.Gecos, a.Home, a.Shell)
}

// group is one line of group(5).
type group struct {
	Name    string
	GID     int
	Members []string
}

// users are an image's /etc/passwd and /etc/group. The raw text is kept, so that merging
// changes nothing but what it must.
type users struct {
	Passwd string `json:"passwd"`
	Group  string `json:"group"`
}

func (u users) accounts() []account {
	var list []account
	for line := range strings.Lines(u.Passwd) {
		f := strings.Split(strings.TrimRight(line, "\r\n"), ":")
		if len(f) < 7 {
			continue
		}
		uid, err1 := strconv.Atoi(f[2])
		gid, err2 := strconv.Atoi(f[3])
		if f[0] == "" || err1 != nil || err2 != nil {
			continue
		}
		list = append(list, account{Name: f[0], UID: uid, GID: gid, Gecos: f[4], Home: f[5], Shell: f[6]})
	}
	return list
}

func (u users) groups() []group {
	var list []group
	for line := range strings.Lines(u.Group) {
		f := strings.Split(strings.TrimRight(line, "\r\n"), ":")
		if len(f) < 4 {
			continue
		}
		gid, err := strconv.Atoi(f[2])
		if f[0] == "" || err != nil {
			continue
		}
		list = append(list, group{Name: f[0], GID: gid, Members: strings.Split(f[3], ",")})
	}
	return list
}

// newUID is the guest's where the image has no better idea.
const newUID = 1000

// pick finds the image's user for a guest: Docker's USER if it is not root, else whoever has
// uid 1000, else a new one. Root links get root.
func (u users) pick(user string, root bool) (account, error) {
	if root {
		a := account{Name: "root"}
		if i := slices.IndexFunc(u.accounts(), func(a account) bool { return a.UID == 0 }); i >= 0 {
			a = u.accounts()[i]
		}
		a.GID, a.Home = 0, "/root"
		return a, nil
	}
	name, groupName, _ := strings.Cut(user, ":")
	if name == "" || name == "root" || isZero(name) {
		return u.byUID(newUID), nil
	}
	a, err := u.named(name)
	if err != nil || a.UID == 0 {
		return u.byUID(newUID), err
	}
	if groupName != "" {
		if a.GID, err = u.gid(groupName); err != nil {
			return account{}, err
		}
	}
	return a, nil
}

func isZero(s string) bool {
	n, err := strconv.Atoi(s)
	return err == nil && n == 0
}

// named finds a name or a number, as USER may be either.
func (u users) named(name string) (account, error) {
	for _, a := range u.accounts() {
		if a.Name == name {
			return a, nil
		}
	}
	uid, err := strconv.Atoi(name)
	if err != nil || uid < 0 {
		return account{}, fmt.Errorf("%w: the image's USER %q is not in its /etc/passwd", ErrInvalid, name)
	}
	a := u.byUID(uid)
	if uid != newUID && !slices.ContainsFunc(u.accounts(), func(a account) bool { return a.UID == uid }) {
		a.GID = 0 // as Docker does for a number that passwd does not know
	}
	return a, nil
}

func (u users) gid(name string) (int, error) {
	for _, g := range u.groups() {
		if g.Name == name {
			return g.GID, nil
		}
	}
	gid, err := strconv.Atoi(name)
	if err != nil || gid < 0 {
		return 0, fmt.Errorf("%w: the image's USER names group %q, which is not in its /etc/group", ErrInvalid, name)
	}
	return gid, nil
}

// byUID finds the account with this uid, or makes one under a free name.
func (u users) byUID(uid int) account {
	all := u.accounts()
	for _, a := range all {
		if a.UID == uid {
			return a
		}
	}
	name := "guest"
	if slices.ContainsFunc(all, func(a account) bool { return a.Name == name }) {
		name = "guest" + strconv.Itoa(uid)
	}
	return account{Name: name, UID: uid, GID: uid, Home: "/home/" + name}
}

// member lists the supplementary groups of a.
func (u users) member(a account) []int {
	var list []int
	for _, g := range u.groups() {
		if g.GID != a.GID && slices.Contains(g.Members, a.Name) {
			list = append(list, g.GID)
		}
	}
	return list
}

// homeFor is where a's workspace is mounted: its home, unless that is a directory of the
// system that the volume must not cover.
func homeFor(a account) string {
	home := path.Clean(a.Home)
	first, _, _ := strings.Cut(strings.TrimPrefix(home, "/"), "/")
	system := []string{"", "bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "nonexistent", "proc", "run", "sbin", "sys", "tmp", ".berth"}
	whole := []string{"/home", "/mnt", "/opt", "/srv", "/usr", "/usr/bin", "/usr/lib", "/usr/sbin", "/usr/local", "/var", "/var/lib", "/var/run", "/var/tmp"}
	if a.UID != 0 {
		whole = append(whole, "/root")
	}
	if !path.IsAbs(home) || slices.Contains(system, first) || slices.Contains(whole, home) {
		return "/home/" + a.Name
	}
	return home
}

// merge returns the image's files with a in them as it is; unchanged where it is already.
func (u users) merge(a account) users {
	line := a.String()
	var out strings.Builder
	found := false
	for old := range strings.Lines(u.Passwd) {
		f := strings.Split(strings.TrimRight(old, "\r\n"), ":")
		if len(f) >= 7 && f[0] == a.Name {
			found = true
			if f[2] != strconv.Itoa(a.UID) || f[3] != strconv.Itoa(a.GID) || f[5] != a.Home || f[6] != a.Shell {
				old = line + "\n"
			}
		}
		out.WriteString(old)
	}
	merged := users{Passwd: out.String(), Group: u.Group}
	if !found {
		merged.Passwd = withLine(merged.Passwd, line)
	}
	if u.Passwd == "" && a.UID != 0 {
		merged.Passwd = "root:x:0:0:root:/root:\n" + merged.Passwd
	}
	if !slices.ContainsFunc(u.groups(), func(g group) bool { return g.GID == a.GID }) {
		merged.Group = withLine(merged.Group, u.freeGroup(a)+":x:"+strconv.Itoa(a.GID)+":")
	}
	return merged
}

// freeGroup is a name for a's own group that the image does not use yet.
func (u users) freeGroup(a account) string {
	name := a.Name
	if a.GID == 0 {
		name = "root"
	}
	if slices.ContainsFunc(u.groups(), func(g group) bool { return g.Name == name }) {
		return name + strconv.Itoa(a.GID)
	}
	return name
}

func withLine(text, line string) string {
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text + line + "\n"
}
