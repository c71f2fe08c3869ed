package container

import (
	"regexp"
	"strings"
)

// profilePath is read by a login shell after everything else in the image's /etc/profile.d.
const profilePath = "/etc/profile.d/zz-berth.sh"

// varName is what a shell can assign to.
var varName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// profile is a script for login shells: Debian's /etc/profile and others set PATH anew, and
// then CUDA's tools are not found. It puts the image's PATH first again, keeps what other
// profile scripts added, and sets the image's other variables where they are gone.
// searchPath is the guest's whole PATH; env is the image's.
func profile(searchPath string, env []string) string {
	var b strings.Builder
	b.WriteString("# Written by Berth: gives a login shell what the image's ENV says.\n")
	b.WriteString("_berth_path=" + quote(searchPath) + "\n")
	b.WriteString(`_berth_rest=${PATH-}:
while [ -n "$_berth_rest" ]; do
	_berth_one=${_berth_rest%%:*}
	_berth_rest=${_berth_rest#*:}
	case ":$_berth_path:" in
	*":$_berth_one:"*) ;;
	*) [ -z "$_berth_one" ] || _berth_path=$_berth_path:$_berth_one ;;
	esac
done
export PATH="$_berth_path"
unset _berth_path _berth_rest _berth_one
`)
	for _, e := range env {
		name, value, _ := strings.Cut(e, "=")
		if !varName.MatchString(name) || name == "PATH" || own(name) {
			continue
		}
		b.WriteString("[ -n \"${" + name + "+x}\" ] || export " + name + "=" + quote(value) + "\n")
	}
	return b.String()
}

// own are variables that belong to the shell or to the guest's login, whatever an image says.
func own(name string) bool {
	switch name {
	case "HOME", "USER", "LOGNAME", "SHELL", "PWD", "OLDPWD", "SHLVL", "_", "IFS", "PPID", "UID", "EUID",
		"BASHOPTS", "SHELLOPTS", "BASH_ENV", "ENV":
		return true
	}
	return false
}

// quote makes one word of s for any POSIX shell.
func quote(s string) string {
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
