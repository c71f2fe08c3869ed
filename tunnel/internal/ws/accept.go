package ws

import (
	"crypto/sha1" //nolint:gosec // the protocol's own, RFC 6455 section 4.2.2; it protects nothing
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// ErrNoRequest is returned for a request that does not ask for a WebSocket we can serve. It has
// been answered.
var ErrNoRequest = errors.New("no websocket request")

const guid = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

// Requested reports whether r asks for a WebSocket.
func Requested(r *http.Request) bool {
	return has(r.Header, "Connection", "upgrade") && has(r.Header, "Upgrade", "websocket")
}

// Accept answers a request for a WebSocket. Of the subprotocols that the client offers the
// first that is in protocols is agreed on; "" where there is none, which is no failure.
func Accept(w http.ResponseWriter, r *http.Request, protocols ...string) (*Conn, string, error) {
	key := r.Header.Get("Sec-Websocket-Key")
	switch raw, err := base64.StdEncoding.DecodeString(key); {
	case !Requested(r) || r.Method != http.MethodGet:
		w.Header().Set("Connection", "Upgrade")
		w.Header().Set("Upgrade", "websocket")
		http.Error(w, "this address speaks WebSocket", http.StatusUpgradeRequired)
		return nil, "", ErrNoRequest
	case !has(r.Header, "Sec-Websocket-Version", "13"):
		w.Header().Set("Sec-Websocket-Version", "13")
		http.Error(w, "this address speaks WebSocket version 13", http.StatusBadRequest)
		return nil, "", ErrNoRequest
	case err != nil || len(raw) != 16:
		http.Error(w, "malformed Sec-WebSocket-Key", http.StatusBadRequest)
		return nil, "", ErrNoRequest
	}
	protocol := ""
	for _, p := range list(r.Header, "Sec-Websocket-Protocol") {
		if slices.Contains(protocols, p) {
			protocol = p
			w.Header().Set("Sec-Websocket-Protocol", p)
			break
		}
	}
	w.Header().Set("Connection", "Upgrade")
	w.Header().Set("Upgrade", "websocket")
	w.Header().Set("Sec-Websocket-Accept", answerTo(key))
	hijacker, ok := w.(http.Hijacker)
	if !ok {
		http.Error(w, "this server cannot change protocols", http.StatusNotImplemented)
		return nil, "", fmt.Errorf("accept websocket: %T cannot be hijacked", w)
	}
	w.WriteHeader(http.StatusSwitchingProtocols)
	raw, rw, err := hijacker.Hijack()
	if err != nil {
		return nil, "", fmt.Errorf("accept websocket: %w", err)
	}
	var ahead []byte
	if rw != nil {
		ahead, _ = rw.Reader.Peek(rw.Reader.Buffered()) // what is buffered can be peeked
	}
	return newConn(raw, false, ahead), protocol, nil
}

// answerTo is the proof that the server read the client's key, section 4.2.2.
func answerTo(key string) string {
	sum := sha1.Sum([]byte(key + guid)) //nolint:gosec // see the import
	return base64.StdEncoding.EncodeToString(sum[:])
}

// list are the elements of a header that may be repeated or separated by commas.
func list(h http.Header, name string) []string {
	var all []string
	for _, v := range h.Values(name) {
		for part := range strings.SplitSeq(v, ",") {
			all = append(all, strings.TrimSpace(part))
		}
	}
	return all
}

func has(h http.Header, name, want string) bool {
	return slices.ContainsFunc(list(h, name), func(v string) bool { return strings.EqualFold(v, want) })
}
