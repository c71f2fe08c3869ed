//go:build integration

package main

import (
	"os/exec"

	"github.com/rogpeppe/go-internal/testscript"
)

func cmdBuild(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: build NAME DIR")
	}
	out, err := exec.Command("docker", "build", "-q", "--network", "none", "-t", args[0], ts.MkAbs(args[1])).CombinedOutput()
	if err != nil {
		ts.Fatalf("build: %v: %s", err, out)
	}
	r := gatewayOf(ts)
	r.images = append(r.images, args[0])
}
