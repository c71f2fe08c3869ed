package cloudflare

import (
	"os/exec"
	"syscall"
)

// dieWithUs has the program end when this process does, also by a signal that none can catch.
func dieWithUs(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
}
