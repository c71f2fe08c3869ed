package main

import (
	"context"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain lets scripts run our own main as the program berth, without a build.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"berth": func() { os.Exit(run(context.Background(), os.Args[1:])) },
	})
}

// TestScript runs the stories that need neither Docker nor a guest.
func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("XDG_CONFIG_HOME", e.WorkDir+"/config")
			return nil
		},
	})
}
