// Package cloudflare is the door through Cloudflare's tunnel service. It dials Cloudflare's edge
// and serves what guests ask of the public hostname in this process: a WebSocket that carries
// SSH, and a few plain pages. Nothing listens on this machine, and SSH stays end to end: the edge
// passes ciphertext on.
//
// The protocol is not a published standard and may change; facts.go holds everything that may.
// Begin with Door. A Connector keeps the connections to the edge, over HTTP/2 (h2.go) or QUIC
// (quic.go); both serve the same handler (site.go), which turns WebSockets into connections for
// the gateway. Supervised runs the official program instead.
package cloudflare
