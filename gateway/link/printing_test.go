package link_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/berth-gpu/berth/gateway/link"
)

// holder is what somebody might print with a token inside.
type holder struct {
	Token  link.Token
	Ptr    *link.Token
	List   []link.Token
	Map    map[string]link.Token
	Any    any
	Nested struct{ Token link.Token }
	hidden link.Token // where fmt calls no methods
}

// TestTokenIsNeverPrinted: by any verb, any logger or any encoder, alone or inside.
func TestTokenIsNeverPrinted(t *testing.T) {
	token, _ := link.Mint()
	in := holder{Token: token, Ptr: &token, List: []link.Token{token}, Map: map[string]link.Token{"t": token}, Any: token, hidden: token}
	in.Nested.Token = token

	var out bytes.Buffer
	for _, verb := range "vsqxXdbocUeEfFgGtpT" {
		for _, flags := range []string{"", "+", "#", "-40", "040", " ", ".3"} {
			for _, value := range []any{token, &token, []link.Token{token}, map[string]link.Token{"t": token}, in, &in} {
				fmt.Fprintf(&out, "%"+flags+string(verb)+"\n", value)
			}
		}
	}
	fmt.Fprint(&out, token, in)
	fmt.Fprintln(&out, fmt.Errorf("wrapped: %v %s: %w", token, token, errors.New(token.String())))
	for _, h := range []slog.Handler{
		slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}),
		slog.NewJSONHandler(&out, nil),
	} {
		log := slog.New(h).With("with", token)
		log.Info("claim", "token", token, "holder", in, "list", in.List, slog.Group("g", "token", token))
	}
	for _, value := range []any{token, in, &in} {
		text, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		out.Write(text)
	}
	text, err := token.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	out.Write(text)

	if n := strings.Count(out.String(), "[token]"); n < 100 {
		t.Errorf("the placeholder shows %d times: did anything print?", n)
	}
	mustNotShow(t, "the output", out.Bytes(), token)
}

// mustNotShow fails if the data contains the token, in plain text or as %x would write it.
func mustNotShow(t *testing.T, what string, data []byte, token link.Token) {
	t.Helper()
	secret := token.Reveal()
	for _, form := range []string{secret, strings.ToUpper(secret), fmt.Sprintf("%x", secret), fmt.Sprintf("%X", secret), secret[:20], secret[6:]} {
		if bytes.Contains(data, []byte(form)) {
			t.Fatalf("%s shows the token", what)
		}
	}
}

// TestTokenIsNotInTheFile: through the life of a link no byte of the file and no error
// shows its tokens.
func TestTokenIsNotInTheFile(t *testing.T) {
	b := newBook(t)
	first, hash := link.Mint()
	second, extra := link.Mint()
	setHash := func(l *link.Link) { l.Grants[0].Hash = hash }
	b.add(theID, setHash)

	var said bytes.Buffer
	say := func(err error) { fmt.Fprintf(&said, "%v %+v %#v\n", err, err, err) }
	try := func(_ link.Link, err error) { say(err) }
	claim := func(h link.Hash, g link.Guest) {
		_, _, err := b.Claim(h, g)
		say(err)
	}
	claim(hash, ann)
	claim(hash, bob)
	try(b.Find(first.Reveal()))
	try(b.Approve(first.Reveal()))
	try(b.Extend(first.Reveal(), time.Hour))
	try(b.End(first.Reveal(), link.Revoked))
	try(b.End(theID, link.Reason(first.Reveal())))
	say(b.Companion(theID, extra))
	say(b.Companion(theID, extra))
	say(b.PutReceipt(first.Reveal(), []byte(first.Reveal())))
	say(b.Add(newLink(theID, b.clock())))
	claim(extra, bob)
	try(b.End(theID, link.Finished))
	claim(hash, ann)
	b.receipt(theID)
	_, err := link.Parse(first.Reveal() + "x")
	say(err)
	fmt.Fprintf(&said, "%v %+v %#v\n", b.List(), b.List(), b.List())
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(b.path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(file, []byte(theID)) {
		t.Fatal("the file does not even hold the link: wrong file?")
	}
	for _, token := range []link.Token{first, second} {
		mustNotShow(t, "the file", file, token)
		mustNotShow(t, "an error", said.Bytes(), token)
	}
}
