package container

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// agentName is the agent's file; `berth` and `scp` are other names of it, and it acts by name.
const agentName = "berth-agent"

// installAgent puts the agent into a directory named after its content, so that a box that
// runs an older one keeps it. It returns the directory.
func installAgent(dir string, binary []byte) (string, error) {
	sum := sha256.Sum256(binary)
	bin := filepath.Join(dir, "agent", hex.EncodeToString(sum[:8]))
	have, err := os.ReadFile(filepath.Join(bin, agentName))
	if err == nil && bytes.Equal(have, binary) && linked(bin) {
		return bin, nil
	}
	// The directory itself is mounted into boxes, so it must be readable for all.
	if err := makeDir(bin); err != nil {
		return "", fmt.Errorf("install agent: %w", err)
	}
	if err := writeFile(filepath.Join(bin, agentName), binary, 0o755); err != nil {
		return "", fmt.Errorf("install agent: %w", err)
	}
	for _, name := range []string{"berth", "scp"} {
		err := os.Symlink(agentName, filepath.Join(bin, name))
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return "", fmt.Errorf("install agent: %w", err)
		}
	}
	return bin, nil
}

func linked(bin string) bool {
	for _, name := range []string{"berth", "scp"} {
		if to, err := os.Readlink(filepath.Join(bin, name)); err != nil || to != agentName {
			return false
		}
	}
	return true
}

// makeDir makes a directory that any user may enter, whatever the umask says.
func makeDir(path string) error {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return err
	}
	return os.Chmod(path, 0o755)
}

// writeFile replaces path in one step, so that a crash leaves the old content or the new.
func writeFile(path string, data []byte, mode fs.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // gone already when all went well
	_, err = f.Write(data)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
