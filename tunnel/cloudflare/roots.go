package cloudflare

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// rootsCache is the file in the state directory.
const rootsCache = "cloudflare-roots.pem"

// rootStore finds the certificates that sign the edge's: a file of the host's own, which then
// counts alone, or this system's roots with Cloudflare's, fetched once and kept.
type rootStore struct {
	file string // the host's own
	dir  string // where the fetched ones are kept
	urls []string
	pins []string
	http *http.Client
}

func (s *rootStore) pool(ctx context.Context) (*x509.CertPool, error) {
	if s.file != "" {
		return readRoots(s.file)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	roots := s.cached()
	if len(roots) == 0 {
		if roots, err = s.fetch(ctx); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrRoots, err)
		}
		s.keep(roots)
	}
	for _, c := range roots {
		pool.AddCert(c)
	}
	return pool, nil
}

func readRoots(file string) (*x509.CertPool, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRoots, err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(data) {
		return nil, fmt.Errorf("%w: %s holds no certificate", ErrRoots, file)
	}
	return pool, nil
}

// cached reads what was fetched before; what is not pinned is not believed.
func (s *rootStore) cached() []*x509.Certificate {
	data, err := os.ReadFile(filepath.Join(s.dir, rootsCache))
	if err != nil {
		return nil
	}
	return s.pinned(data)
}

// keep saves them for the next start. Without, they are fetched again.
func (s *rootStore) keep(roots []*x509.Certificate) {
	var data []byte
	for _, c := range roots {
		data = append(data, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})...)
	}
	path := filepath.Join(s.dir, rootsCache)
	if os.WriteFile(path+".new", data, 0o600) == nil {
		_ = os.Rename(path+".new", path)
	}
}

// fetch gets the roots from the documentation's pages. One is enough: which of them signs depends
// on the edge.
func (s *rootStore) fetch(ctx context.Context) ([]*x509.Certificate, error) {
	var roots []*x509.Certificate
	var errs []error
	for _, url := range s.urls {
		data, err := s.get(ctx, url)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		found := s.pinned(data)
		if len(found) == 0 {
			errs = append(errs, fmt.Errorf("fetch %s: it is not the certificate that was expected", url))
		}
		roots = append(roots, found...)
	}
	if len(roots) == 0 {
		return nil, errors.Join(errs...)
	}
	return roots, nil
}

func (s *rootStore) get(ctx context.Context, url string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	resp, err := s.http.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close() //nolint:errcheck // it was only read
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("fetch %s: %s", url, resp.Status)
	}
	return io.ReadAll(io.LimitReader(resp.Body, 64<<10))
}

// pinned returns the certificates of a PEM text that are the expected ones.
func (s *rootStore) pinned(data []byte) []*x509.Certificate {
	var out []*x509.Certificate
	for {
		var block *pem.Block
		if block, data = pem.Decode(data); block == nil {
			return out
		}
		sum := sha256.Sum256(block.Bytes)
		if !slices.Contains(s.pins, hex.EncodeToString(sum[:])) {
			continue
		}
		if c, err := x509.ParseCertificate(block.Bytes); err == nil {
			out = append(out, c)
		}
	}
}

// rootsEnd is when the first of the pinned roots expires.
func rootsEnd() time.Time { return time.Date(2029, time.August, 15, 0, 0, 0, 0, time.UTC) }
