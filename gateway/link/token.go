package link

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
)

// alphabet has 32 characters, so that five random bits make one without bias. It leaves
// out l, o, 0 and 1, which people misread; the letters come first, see word.
const alphabet = "abcdefghijkmnpqrstuvwxyz23456789"

const (
	letters     = 24 // how many of the alphabet are letters
	tokenLength = 26
	idLength    = 8
	hidden      = "[token]" // what every printer shows instead of a token
)

// ErrMalformed is what Parse says of anything that cannot be a token.
var ErrMalformed = errors.New("malformed token")

// Token is the secret of a grant. Printing it in any way shows a placeholder; only Reveal
// gives it away. It holds a pointer since fmt calls no methods on unexported fields, nor
// for %p: what it finds there is an address. Tokens cannot be compared; their hashes can.
type Token struct {
	text *string
	_    [0]func()
}

// Mint makes a new token and the hash to store. The token is 26 characters from
// crypto/rand, lower-case letters and digits, the first a letter (so no program takes
// it for an option or a number): 129.6 bits of chance.
func Mint() (Token, Hash) {
	text := word(tokenLength)
	t := Token{text: &text}
	return t, t.Hash()
}

// NewID makes the id of a link: 8 random characters of the token's alphabet, the first a
// letter. It is no secret; the store refuses the rare one that is taken.
func NewID() string { return word(idLength) }

// word draws n random characters of the alphabet, the first of them a letter.
func word(n int) string {
	drawn := make([]byte, n)
	_, _ = rand.Read(drawn) // crypto/rand.Read never fails: it ends the program instead
	for drawn[0]&31 >= letters {
		_, _ = rand.Read(drawn[:1])
	}
	for i, b := range drawn {
		drawn[i] = alphabet[b&31]
	}
	return string(drawn)
}

// Parse accepts exactly what Mint makes and returns ErrMalformed for all else. The error
// never contains the input, which may be a secret with a slip in it.
func Parse(s string) (Token, error) {
	if len(s) != tokenLength || strings.IndexByte(alphabet[:letters], s[0]) < 0 {
		return Token{}, ErrMalformed
	}
	for i := range len(s) {
		if strings.IndexByte(alphabet, s[i]) < 0 {
			return Token{}, ErrMalformed
		}
	}
	return Token{text: &s}, nil
}

// Reveal returns the token itself: for the host's eyes, once, when the link is made.
// Of a Token that neither Mint nor Parse made it is empty.
func (t Token) Reveal() string {
	if t.text == nil {
		return ""
	}
	return *t.text
}

// Hash returns what the book stores in the token's place.
func (t Token) Hash() Hash { return sha256.Sum256([]byte(t.Reveal())) }

// String hides the token.
func (Token) String() string { return hidden }

// GoString hides the token from %#v.
func (Token) GoString() string { return hidden }

// Format hides the token from every verb, %x and %q too.
func (Token) Format(w fmt.State, _ rune) { _, _ = io.WriteString(w, hidden) }

// LogValue hides the token from slog.
func (Token) LogValue() slog.Value { return slog.StringValue(hidden) }

// MarshalJSON hides the token: what is meant to be shown goes through Reveal.
func (Token) MarshalJSON() ([]byte, error) { return []byte(`"` + hidden + `"`), nil }

// MarshalText hides the token from the other encoders.
func (Token) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// Hash is the SHA-256 of a token: all that is ever stored of it.
type Hash [sha256.Size]byte

// MarshalText writes the hash as hexadecimal digits.
func (h Hash) MarshalText() ([]byte, error) { return []byte(hex.EncodeToString(h[:])), nil }

// UnmarshalText reads what MarshalText wrote, and nothing shorter or longer.
func (h *Hash) UnmarshalText(text []byte) error {
	if len(text) != hex.EncodedLen(len(h)) {
		return errors.New("read token hash: wrong length")
	}
	if _, err := hex.Decode(h[:], text); err != nil {
		return errors.New("read token hash: not hexadecimal")
	}
	return nil
}
