//go:build integration

package container

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

func openForBuild(t *testing.T) *Engine {
	t.Helper()
	if err := exec.Command("docker", "info").Run(); err != nil {
		t.Skipf("no docker: %v", err)
	}
	if err := canBuild(); err != nil {
		t.Skipf("cannot build here: %v", err)
	}
	e, err := Open(Options{Dir: t.TempDir(), Env: os.Getenv})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestBuildImage(t *testing.T) {
	t.Parallel()
	e := openForBuild(t)
	const ref = "berth-test-build:12"
	t.Cleanup(func() { _ = exec.Command("docker", "rmi", "-f", ref).Run() })
	said := 0
	o := ImageOptions{Ref: ref, Progress: func(l string) { said++; t.Log(l) }}
	if err := e.buildImage(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if said < 3 {
		t.Errorf("only %d lines of progress", said)
	}
	if left := entries(e.buildDir()); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	out, err := exec.Command("docker", "run", "--rm", "--network", "none", ref, "bash", "-c",
		"locale charmap; id -un 1000; for p in bash python3 rsync git curl tmux nano less ps ip ssh; do command -v $p >/dev/null || echo no $p; done").CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != "UTF-8\nguest" {
		t.Errorf("%v: %s", err, out)
	}
	if err := e.buildImage(t.Context(), o); err != nil {
		t.Errorf("second build: %v", err)
	}
}

func TestBuildInterrupted(t *testing.T) {
	t.Parallel()
	e := openForBuild(t)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	const ref = "berth-test-interrupted:12"
	if err := e.buildImage(ctx, ImageOptions{Ref: ref, Progress: func(string) {}}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	if left := entries(e.buildDir()); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	if there, err := e.ImagePresent(t.Context(), ref); there || err != nil {
		t.Errorf("a half image is there: %v, %v", there, err)
	}
}
