package container

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/moby/moby/client"
)

// endpoint finds Docker the way the docker command does:
//
//  1. Options.Host
//  2. DOCKER_HOST, with DOCKER_TLS_VERIFY and DOCKER_CERT_PATH
//  3. DOCKER_CONTEXT
//  4. currentContext in config.json of DOCKER_CONFIG or ~/.docker
//  5. the default socket
//
// It returns the client's options and the host that was chosen.
func endpoint(o Options) ([]client.Opt, string, error) {
	env := o.Env
	if env == nil {
		env = func(string) string { return "" }
	}
	found := contextMeta{Host: o.Host}
	if found.Host == "" {
		found.Host = env("DOCKER_HOST")
		if env("DOCKER_TLS_VERIFY") != "" {
			found.certs = certsIn(env)
		}
	}
	if found.Host == "" {
		var err error
		if found, err = currentContext(env); err != nil {
			return nil, "", err
		}
	}
	if found.Host == "" {
		found.Host = client.DefaultDockerHost
	}
	scheme, _, _ := strings.Cut(found.Host, "://")
	if scheme != "unix" && scheme != "tcp" && scheme != "http" && scheme != "https" {
		return nil, "", fmt.Errorf("%w: docker at %s: only unix and tcp addresses are supported", ErrInvalid, found.Host)
	}
	opts := []client.Opt{client.WithHost(found.Host)}
	if c := found.certs; c != "" {
		opts = append(opts, client.WithTLSClientConfig(
			ifExists(c, "ca.pem"), ifExists(c, "cert.pem"), ifExists(c, "key.pem")))
	}
	return opts, found.Host, nil
}

// contextMeta is what a docker context says about its endpoint.
type contextMeta struct {
	Host  string
	certs string // directory of ca.pem, cert.pem, key.pem; "" without TLS
}

// currentContext reads the context that docker would use; the zero value is the default one.
func currentContext(env func(string) string) (contextMeta, error) {
	dir := configDir(env)
	name := env("DOCKER_CONTEXT")
	if name == "" && dir != "" {
		var config struct{ CurrentContext string }
		data, err := os.ReadFile(filepath.Join(dir, "config.json"))
		if err == nil {
			err = json.Unmarshal(data, &config)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return contextMeta{}, fmt.Errorf("read docker's config.json: %w", err)
		}
		name = config.CurrentContext
	}
	if name == "" || name == "default" {
		return contextMeta{}, nil
	}
	// Docker names the directory of a context by the hash of its name.
	sum := sha256.Sum256([]byte(name))
	id := hex.EncodeToString(sum[:])
	data, err := os.ReadFile(filepath.Join(dir, "contexts", "meta", id, "meta.json"))
	if err != nil {
		return contextMeta{}, fmt.Errorf("read docker context %q: %w", name, err)
	}
	var meta struct {
		Endpoints map[string]contextMeta
	}
	if err := json.Unmarshal(data, &meta); err != nil {
		return contextMeta{}, fmt.Errorf("read docker context %q: %w", name, err)
	}
	found := meta.Endpoints["docker"]
	certs := filepath.Join(dir, "contexts", "tls", id, "docker")
	if _, err := os.Stat(certs); err == nil {
		found.certs = certs
	}
	return found, nil
}

func configDir(env func(string) string) string {
	if dir := env("DOCKER_CONFIG"); dir != "" {
		return dir
	}
	if home := env("HOME"); home != "" {
		return filepath.Join(home, ".docker")
	}
	return ""
}

func certsIn(env func(string) string) string {
	if dir := env("DOCKER_CERT_PATH"); dir != "" {
		return dir
	}
	return configDir(env)
}

func ifExists(dir, name string) string {
	path := filepath.Join(dir, name)
	if _, err := os.Stat(path); err != nil {
		return ""
	}
	return path
}
