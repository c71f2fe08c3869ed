package container

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// dockerConfig writes a docker configuration with one context.
func dockerConfig(t *testing.T, current string) string {
	t.Helper()
	dir := t.TempDir()
	sum := sha256.Sum256([]byte("lab"))
	meta := filepath.Join(dir, "contexts", "meta", hex.EncodeToString(sum[:]))
	if err := os.MkdirAll(meta, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		filepath.Join(meta, "meta.json"):  `{"Name":"lab","Endpoints":{"docker":{"Host":"unix:///lab.sock","SkipTLSVerify":false}}}`,
		filepath.Join(dir, "config.json"): `{"auths":{},"currentContext":"` + current + `"}`,
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestEndpoint(t *testing.T) {
	lab, other := dockerConfig(t, "lab"), dockerConfig(t, "default")
	const usual = "unix:///var/run/docker.sock"
	for _, c := range []struct {
		name string
		host string
		env  map[string]string
		want string
	}{
		{"nothing said", "", nil, usual},
		{"option", "unix:///opt.sock", map[string]string{"DOCKER_HOST": "unix:///env.sock"}, "unix:///opt.sock"},
		{"DOCKER_HOST", "", map[string]string{"DOCKER_HOST": "tcp://127.0.0.1:2375", "DOCKER_CONTEXT": "lab", "DOCKER_CONFIG": lab}, "tcp://127.0.0.1:2375"},
		{"DOCKER_CONTEXT", "", map[string]string{"DOCKER_CONTEXT": "lab", "DOCKER_CONFIG": other}, "unix:///lab.sock"},
		{"DOCKER_CONTEXT default", "", map[string]string{"DOCKER_CONTEXT": "default", "DOCKER_CONFIG": lab}, usual},
		{"current context", "", map[string]string{"DOCKER_CONFIG": lab}, "unix:///lab.sock"},
		{"current context is the default", "", map[string]string{"DOCKER_CONFIG": other}, usual},
		{"no configuration", "", map[string]string{"HOME": t.TempDir()}, usual},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, got, err := endpoint(Options{Host: c.host, Env: func(n string) string { return c.env[n] }})
			if err != nil || got != c.want {
				t.Errorf("got %q, %v, want %q", got, err, c.want)
			}
		})
	}
	t.Run("unknown context", func(t *testing.T) {
		env := map[string]string{"DOCKER_CONTEXT": "nosuch", "DOCKER_CONFIG": lab}
		if _, _, err := endpoint(Options{Env: func(n string) string { return env[n] }}); err == nil {
			t.Error("no error")
		}
	})
	t.Run("ssh", func(t *testing.T) {
		if _, _, err := endpoint(Options{Host: "ssh://somewhere"}); !errors.Is(err, ErrInvalid) {
			t.Errorf("got %v", err)
		}
	})
}
