package link_test

import (
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/berth-gpu/berth/gateway/link"
)

var (
	tokenShape = regexp.MustCompile(`^[a-km-np-z][a-km-np-z2-9]{25}$`)
	idShape    = regexp.MustCompile(`^[a-km-np-z][a-km-np-z2-9]{7}$`)
)

func TestMintShape(t *testing.T) {
	seen := map[string]bool{}
	for range 2000 {
		token, hash := link.Mint()
		text := token.Reveal()
		if !tokenShape.MatchString(text) {
			t.Fatalf("minted %q", text)
		}
		if seen[text] {
			t.Fatalf("minted %q twice", text)
		}
		seen[text] = true
		if token.Hash() != hash {
			t.Fatal("Mint's hash is not the token's")
		}
		back, err := link.Parse(text)
		if err != nil || back.Hash() != hash || back.Reveal() != text {
			t.Fatalf("Parse of a minted token: %v", err)
		}
	}
}

// TestMintUsesTheWholeAlphabet: at every place every allowed character turns up. Among
// 4,000 draws one of 32 characters is missing with a chance of about e^-125.
func TestMintUsesTheWholeAlphabet(t *testing.T) {
	places := make([]map[byte]bool, 26)
	for i := range places {
		places[i] = map[byte]bool{}
	}
	for range 4000 {
		token, _ := link.Mint()
		for i := range places {
			places[i][token.Reveal()[i]] = true
		}
	}
	for i, seen := range places {
		want := 32
		if i == 0 {
			want = 24
		}
		if len(seen) != want {
			t.Errorf("place %d shows %d different characters, want %d", i, len(seen), want)
		}
	}
}

func TestNewID(t *testing.T) {
	seen := map[string]bool{}
	for range 2000 {
		id := link.NewID()
		if !idShape.MatchString(id) || seen[id] {
			t.Fatalf("id %q, or drawn twice", id)
		}
		seen[id] = true
	}
}

func TestParseRefuses(t *testing.T) {
	good := "abcdefghijkmnpqrstuvwxyz23"
	if _, err := link.Parse(good); err != nil {
		t.Fatalf("Parse of a good token: %v", err)
	}
	for name, text := range map[string]string{
		"empty":             "",
		"short":             good[:25],
		"long":              good + "a",
		"upper case":        strings.ToUpper(good),
		"one upper case":    "A" + good[1:],
		"starts with digit": "2" + good[1:],
		"letter l":          "al" + good[2:],
		"letter o":          "ao" + good[2:],
		"digit 0":           "a0" + good[2:],
		"digit 1":           "a1" + good[2:],
		"leading space":     " " + good[1:],
		"trailing newline":  good[:25] + "\n",
		"nul":               good[:25] + "\x00",
		"shell":             "$(reboot)" + good[9:],
		"two-byte letters":  strings.Repeat("é", 13),
		"not UTF-8":         good[:25] + "\xff",
		"huge":              strings.Repeat("a", 1<<20),
	} {
		token, err := link.Parse(text)
		if !errors.Is(err, link.ErrMalformed) || token.Reveal() != "" {
			t.Errorf("%s: Parse gave an error %v", name, err)
			continue
		}
		if text != "" && strings.Contains(err.Error(), text) {
			t.Errorf("%s: the error shows the input", name)
		}
	}
}

func TestHashText(t *testing.T) {
	_, hash := link.Mint()
	text, err := json.Marshal(map[string]link.Hash{"hash": hash})
	if err != nil {
		t.Fatal(err)
	}
	var back map[string]link.Hash
	if err := json.Unmarshal(text, &back); err != nil || back["hash"] != hash {
		t.Fatalf("hash came back as %x, error %v", back["hash"], err)
	}
	var h link.Hash
	for _, bad := range []string{"", "ab", strings.Repeat("a", 63), strings.Repeat("a", 65), strings.Repeat("x", 64)} {
		if err := h.UnmarshalText([]byte(bad)); err == nil {
			t.Errorf("UnmarshalText took %q", bad)
		} else if bad != "" && strings.Contains(err.Error(), bad) {
			t.Errorf("the error shows the input %q", bad)
		}
	}
}

func FuzzParse(f *testing.F) {
	token, _ := link.Mint()
	for _, seed := range []string{"", token.Reveal(), strings.ToUpper(token.Reveal()), token.Reveal() + "\n", "root", "-oProxyCommand=x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		token, err := link.Parse(text)
		if (err == nil) != tokenShape.MatchString(text) {
			t.Fatalf("Parse(%q): %v", text, err)
		}
		if err == nil && token.Reveal() != text {
			t.Fatalf("Parse changed %q", text)
		}
		if err != nil && (!errors.Is(err, link.ErrMalformed) || err.Error() != link.ErrMalformed.Error()) {
			t.Fatalf("Parse(%q) says more than it may: %v", text, err)
		}
	})
}

func FuzzHashText(f *testing.F) {
	f.Add([]byte(strings.Repeat("0a", 32)))
	f.Add([]byte("0a"))
	f.Fuzz(func(t *testing.T, text []byte) {
		var h link.Hash
		if h.UnmarshalText(text) != nil {
			return
		}
		back, err := h.MarshalText()
		if err != nil || !strings.EqualFold(string(back), string(text)) {
			t.Fatalf("%q came back as %q, error %v", text, back, err)
		}
	})
}
