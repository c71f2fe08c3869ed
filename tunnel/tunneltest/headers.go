package tunneltest

import (
	"crypto/sha1"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"strings"
)

// maxPacked is the documented limit of one header at the edge.
const maxPacked = 16 << 10

// unpackHeaders reads the packed list of a handler's headers.
func unpackHeaders(packed string) (http.Header, error) {
	if len(packed) > maxPacked {
		return nil, fmt.Errorf("packed headers of %d bytes", len(packed))
	}
	h := http.Header{}
	if packed == "" {
		return h, nil
	}
	for pair := range strings.SplitSeq(packed, ";") {
		k, v, found := strings.Cut(pair, ":")
		name, err := base64.RawStdEncoding.DecodeString(k)
		if err != nil || !found {
			return nil, fmt.Errorf("packed pair %q", pair)
		}
		value, err := base64.RawStdEncoding.DecodeString(v)
		if err != nil {
			return nil, fmt.Errorf("packed pair %q", pair)
		}
		low := strings.ToLower(string(name))
		for _, prefix := range []string{":", "cf-int-", "cf-cloudflared-", "cf-proxy-"} {
			if strings.HasPrefix(low, prefix) {
				return nil, fmt.Errorf("header %q is the edge's own", name)
			}
		}
		h.Add(string(name), string(value))
	}
	return h, nil
}

// prepare makes a guest's request what the edge passes on: no hop-by-hop headers, and the edge's
// own instead of whatever the guest claimed.
func prepare(r *http.Request) *http.Request {
	out := r.Clone(r.Context())
	out.Close = false // a guest's wish for its own connection, not for the tunnel's
	for _, h := range []string{"Connection", "Upgrade", "Sec-Websocket-Version", "Keep-Alive", "Te", "Transfer-Encoding", "Proxy-Connection"} {
		out.Header.Del(h)
	}
	ip, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		ip = "192.0.2.1"
	}
	out.Header.Set("Cf-Connecting-Ip", ip)
	out.Header.Add("X-Forwarded-For", ip)
	out.Header.Set("X-Forwarded-Proto", "https")
	out.Header.Set("Cf-Ray", "8f00ba4000000000-TST")
	out.Header.Set("Cf-Visitor", `{"scheme":"https"}`)
	out.Header.Set("Cdn-Loop", "cloudflare; loops=1")
	return out
}

func isWebSocket(r *http.Request) bool {
	return strings.EqualFold(r.Header.Get("Upgrade"), "websocket")
}

// acceptKey is the answer to a WebSocket key, RFC 6455 section 4.2.2.
func acceptKey(key string) string {
	sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	return base64.StdEncoding.EncodeToString(sum[:])
}
