package tunneltest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"time"
)

// Names in the certificates of the edge's transports.
const (
	nameH2   = "h2.cftunnel.com"
	nameQUIC = "quic.cftunnel.com"
	alpnQUIC = "argotunnel"
)

// authority is a throw-away certificate authority and one certificate for everything the fake
// serves.
type authority struct {
	pool *x509.CertPool
	pem  []byte
	leaf tls.Certificate
}

func newAuthority() (authority, error) {
	rootKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return authority{}, err
	}
	now := time.Now()
	root := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "fake edge authority"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	rootDER, err := x509.CreateCertificate(rand.Reader, root, root, &rootKey.PublicKey, rootKey)
	if err != nil {
		return authority{}, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return authority{}, err
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "fake edge"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:    []string{nameH2, nameQUIC, "localhost", "*.example.test", "*.trycloudflare.com"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	leafDER, err := x509.CreateCertificate(rand.Reader, leaf, root, &key.PublicKey, rootKey)
	if err != nil {
		return authority{}, err
	}
	a := authority{pool: x509.NewCertPool(), leaf: tls.Certificate{Certificate: [][]byte{leafDER}, PrivateKey: key}}
	a.pem = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: rootDER})
	if !a.pool.AppendCertsFromPEM(a.pem) {
		return authority{}, fmt.Errorf("fake authority does not parse")
	}
	return a, nil
}
