package gateway

import (
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"charm.land/ssh"
	gossh "golang.org/x/crypto/ssh"
)

// rsaBits is the size of the RSA host key that older clients ask for.
const rsaBits = 3072

// hostKeys returns the gateway's keys, made on the first start and the same ever after:
// a guest is warned of an attack when they change.
func hostKeys(dir string) ([]ssh.Signer, error) {
	newEd25519 := func() (crypto.PrivateKey, error) {
		_, k, err := ed25519.GenerateKey(rand.Reader)
		return k, err
	}
	newRSA := func() (crypto.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, rsaBits) }
	first, err := hostKey(filepath.Join(dir, "ssh_host_ed25519_key"), newEd25519)
	if err != nil {
		return nil, err
	}
	second, err := hostKey(filepath.Join(dir, "ssh_host_rsa_key"), newRSA)
	if err != nil {
		return nil, err
	}
	return []ssh.Signer{first, second}, nil
}

func hostKey(path string, generate func() (crypto.PrivateKey, error)) (ssh.Signer, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		data, err = makeHostKey(path, generate)
	}
	if err != nil {
		return nil, fmt.Errorf("host key: %w", err)
	}
	signer, err := gossh.ParsePrivateKey(data)
	if err != nil {
		return nil, fmt.Errorf("host key %s: %w", path, err)
	}
	return signer, nil
}

// makeHostKey writes a new key whole or not at all: half a key would be a new identity later.
func makeHostKey(path string, generate func() (crypto.PrivateKey, error)) ([]byte, error) {
	key, err := generate()
	if err != nil {
		return nil, err
	}
	block, err := gossh.MarshalPrivateKey(key, "berth host key")
	if err != nil {
		return nil, err
	}
	data := pem.EncodeToMemory(block)
	return data, writeDurable(path, data)
}

// writeDurable replaces path with data, synced, readable by the owner only.
func writeDurable(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }()
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// hostKeyView describes the key a guest should meet, at whichever of these doors.
func (s *Server) hostKeyView(doors []DoorView) HostKey {
	pub := s.keys[0].PublicKey()
	var names []string
	for _, d := range doors {
		name := d.Host
		if d.Port != 22 {
			name = fmt.Sprintf("[%s]:%d", d.Host, d.Port)
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		names = []string{"berth"} // no door is open yet: the host puts in the name
	}
	return HostKey{
		Type:        pub.Type(),
		Fingerprint: gossh.FingerprintSHA256(pub),
		KnownHosts:  strings.Join(names, ",") + " " + string(trimLine(gossh.MarshalAuthorizedKey(pub))),
	}
}

func trimLine(b []byte) []byte {
	if n := len(b); n > 0 && b[n-1] == '\n' {
		return b[:n-1]
	}
	return b
}
