package container

import (
	"errors"
	"strings"
	"testing"
)

const debianPasswd = "root:x:0:0:root:/root:/bin/bash\ndaemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin\n" +
	"www-data:x:33:33:www-data:/var/www:/usr/sbin/nologin\n"

const debianGroup = "root:x:0:\ndaemon:x:1:\nwww-data:x:33:\nvideo:x:44:ubuntu,www-data\n"

const ubuntu = "ubuntu:x:1000:1000:Ubuntu:/home/ubuntu:/bin/bash\n"

func TestPick(t *testing.T) {
	for _, c := range []struct {
		name, passwd, user string
		root               bool
		want, home         string
	}{
		{"new", debianPasswd, "", false, "guest:x:1000:1000::/home/guest:", "/home/guest"},
		{"nothing at all", "", "", false, "guest:x:1000:1000::/home/guest:", "/home/guest"},
		{"uid 1000", debianPasswd + ubuntu, "", false, strings.TrimSpace(ubuntu), "/home/ubuntu"},
		{"root by name", debianPasswd, "root", false, "guest:x:1000:1000::/home/guest:", "/home/guest"},
		{"root by number", debianPasswd, "0:0", false, "guest:x:1000:1000::/home/guest:", "/home/guest"},
		{"root by another name", "toor:x:0:0::/root:/bin/sh\n", "toor", false, "guest:x:1000:1000::/home/guest:", "/home/guest"},
		{"by name", debianPasswd, "www-data", false, "www-data:x:33:33:www-data:/var/www:/usr/sbin/nologin", "/var/www"},
		{"by number", debianPasswd, "33", false, "www-data:x:33:33:www-data:/var/www:/usr/sbin/nologin", "/var/www"},
		{"name and group", debianPasswd, "www-data:video", false, "www-data:x:33:44:www-data:/var/www:/usr/sbin/nologin", "/var/www"},
		{"name and number", debianPasswd, "www-data:4242", false, "www-data:x:33:4242:www-data:/var/www:/usr/sbin/nologin", "/var/www"},
		{"number not in passwd", debianPasswd, "4242", false, "guest:x:4242:0::/home/guest:", "/home/guest"},
		{"1000 not in passwd", debianPasswd, "1000", false, "guest:x:1000:1000::/home/guest:", "/home/guest"},
		{"guest is taken", "guest:x:5:5::/var/guest:/bin/sh\n", "", false, "guest1000:x:1000:1000::/home/guest1000:", "/home/guest1000"},
		{"system home", debianPasswd, "daemon", false, "daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin", "/home/daemon"},
		{"root link", debianPasswd + ubuntu, "ubuntu", true, "root:x:0:0:root:/root:/bin/bash", "/root"},
		{"root link, no passwd", "", "", true, "root:x:0:0::/root:", "/root"},
		{"broken lines", "x\n\n:::\na:b:c:d:e:f:g\n" + ubuntu, "", false, strings.TrimSpace(ubuntu), "/home/ubuntu"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := users{Passwd: c.passwd, Group: debianGroup}.pick(c.user, c.root)
			if err != nil {
				t.Fatal(err)
			}
			if got.String() != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
			if home := homeFor(got); home != c.home {
				t.Errorf("home: got %s, want %s", home, c.home)
			}
		})
	}
	for _, user := range []string{"nosuch", "www-data:nosuch", "-5"} {
		if _, err := (users{Passwd: debianPasswd, Group: debianGroup}).pick(user, false); !errors.Is(err, ErrInvalid) {
			t.Errorf("USER %q: %v, want ErrInvalid", user, err)
		}
	}
}

func TestHomeFor(t *testing.T) {
	for home, want := range map[string]string{
		"/home/x": "/home/x", "/app": "/app", "/var/lib/x": "/var/lib/x", "/workspace/": "/workspace",
		"": "/home/u", "/": "/home/u", "relative": "/home/u", "/tmp": "/home/u", "/tmp/x": "/home/u", "/nonexistent": "/home/u",
		"/root": "/home/u", "/proc/x": "/home/u", "/usr": "/home/u", "/home": "/home/u", "/.berth/bin": "/home/u", "/app/../etc": "/home/u",
	} {
		if got := homeFor(account{Name: "u", UID: 1, Home: home}); got != want {
			t.Errorf("%q: got %s, want %s", home, got, want)
		}
	}
}

func TestMerge(t *testing.T) {
	for _, c := range []struct {
		name          string
		have          users
		who           account
		passwd, group string // what is appended or replaced; "" when it must stay as it is
	}{
		{
			"new",
			users{debianPasswd, debianGroup},
			account{Name: "guest", UID: 1000, GID: 1000, Home: "/home/guest", Shell: "/bin/bash"},
			debianPasswd + "guest:x:1000:1000::/home/guest:/bin/bash\n", debianGroup + "guest:x:1000:\n",
		},
		{
			"no files",
			users{},
			account{Name: "guest", UID: 1000, GID: 1000, Home: "/home/guest"},
			"root:x:0:0:root:/root:\nguest:x:1000:1000::/home/guest:\n", "guest:x:1000:\n",
		},
		{
			"no end of line",
			users{"root:x:0:0::/root:/bin/sh", "root:x:0:"},
			account{Name: "guest", UID: 1000, GID: 0, Home: "/home/guest"},
			"root:x:0:0::/root:/bin/sh\nguest:x:1000:0::/home/guest:\n", "root:x:0:",
		},
		{
			"there already",
			users{debianPasswd + ubuntu, debianGroup + "ubuntu:x:1000:\n"},
			account{Name: "ubuntu", UID: 1000, GID: 1000, Gecos: "Ubuntu", Home: "/home/ubuntu", Shell: "/bin/bash"},
			debianPasswd + ubuntu, debianGroup + "ubuntu:x:1000:\n",
		},
		{
			"other home",
			users{debianPasswd, debianGroup},
			account{Name: "daemon", UID: 1, GID: 1, Gecos: "daemon", Home: "/home/daemon", Shell: "/bin/sh"},
			strings.Replace(debianPasswd, "daemon:/usr/sbin:/usr/sbin/nologin", "daemon:/home/daemon:/bin/sh", 1), debianGroup,
		},
		{
			"group's name is taken",
			users{debianPasswd, debianGroup + "guest:x:7:\n"},
			account{Name: "guest", UID: 1000, GID: 1000, Home: "/home/guest"},
			debianPasswd + "guest:x:1000:1000::/home/guest:\n", debianGroup + "guest:x:7:\nguest1000:x:1000:\n",
		},
		{
			"root link, no files",
			users{},
			account{Name: "root", Home: "/root", Shell: "/bin/sh"},
			"root:x:0:0::/root:/bin/sh\n", "root:x:0:\n",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := c.have.merge(c.who)
			if got.Passwd != c.passwd {
				t.Errorf("passwd: got\n%s\nwant\n%s", got.Passwd, c.passwd)
			}
			if got.Group != c.group {
				t.Errorf("group: got\n%s\nwant\n%s", got.Group, c.group)
			}
		})
	}
}

func TestMember(t *testing.T) {
	u := users{Group: debianGroup}
	if got := u.member(account{Name: "ubuntu", GID: 1000}); len(got) != 1 || got[0] != 44 {
		t.Errorf("got %v", got)
	}
	if got := u.member(account{Name: "ubuntu", GID: 44}); len(got) != 0 {
		t.Errorf("primary group is listed again: %v", got)
	}
}

func TestShellFor(t *testing.T) {
	v := &imageView{Shells: []string{"/bin/sh", "/bin/zsh"}}
	for shell, want := range map[string]string{
		"/bin/zsh": "/bin/zsh", "/bin/fish": "/bin/sh", "": "/bin/sh", "/usr/sbin/nologin": "/bin/sh", "/bin/false": "/bin/sh",
	} {
		if got := v.shellFor(account{Shell: shell}); got != want {
			t.Errorf("%q: got %q, want %q", shell, got, want)
		}
	}
	if got := (&imageView{}).shellFor(account{Shell: "/bin/sh"}); got != "" {
		t.Errorf("image without a shell: got %q", got)
	}
}
