package link

import (
	"crypto/sha256"
	"encoding/hex"
)

// Hash is the SHA-256 of a token: all that is ever stored of it.
type Hash [sha256.Size]byte

// MarshalText writes the hash as hexadecimal digits.
func (h Hash) MarshalText() ([]byte, error) { return []byte(hex.EncodeToString(h[:])), nil }
