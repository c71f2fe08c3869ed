package cloudflare

import "time"

// Everything here is Cloudflare's choice, and may change without notice. It was written from what
// release 2026.8.2 of the official connector does.
const (
	described = "2026.8.2"

	// The edge: where it is found, the names in its certificates, what it speaks.
	srvService, srvProto, srvDomain = "v2-origintunneld", "tcp", "argotunnel.com"
	dotAddress, dotName             = "1.1.1.1:853", "cloudflare-dns.com"

	nameH2   = "h2.cftunnel.com"
	nameQUIC = "quic.cftunnel.com"
	alpnQUIC = "argotunnel"

	// The service that makes quick tunnels, and the domain of their names.
	quickService = "https://api.trycloudflare.com"
	quickDomain  = ".trycloudflare.com"

	// Headers on the HTTP/2 transport. A request's mark says what it is for.
	headerMark      = "Cf-Cloudflared-Proxy-Connection-Upgrade"
	headerTCPSource = "Cf-Cloudflared-Proxy-Src"
	headerPacked    = "Cf-Cloudflared-Response-Headers"
	headerMeta      = "Cf-Cloudflared-Response-Meta"

	markControl   = "control-stream"
	markWebSocket = "websocket"
	markConfig    = "update-configuration"

	metaOrigin = `{"src":"origin"}`
	metaOwn    = `{"src":"cloudflared"}`

	// headerAddress is the guest's address, set by the edge.
	headerAddress = "Cf-Connecting-Ip"

	// hostManagement is where the official connector serves its own diagnostics.
	hostManagement = "management.argotunnel.com"

	// Causes of refusals that mean something.
	causeDuplicate    = "EDUPCONN"
	causeUnauthorized = "Unauthorized"

	// maxPacked keeps an answer's headers below the documented 16 KB for one of them.
	maxPacked = 10 << 10

	maxConnections = 4

	// Terms is where a host reads what the service may be used for.
	Terms = "https://www.cloudflare.com/service-specific-terms-application-services/#content-delivery-network-terms"
)

// How long the edge is given, and what it expects.
const (
	dialTimeout     = 15 * time.Second
	controlTimeout  = 15 * time.Second // until the edge opens the control stream of an HTTP/2 connection
	registerTimeout = 5 * time.Second
	spreadStart     = time.Second      // between the first registrations of the connections
	pingAfter       = 15 * time.Second // of silence on HTTP/2
	pingTimeout     = 10 * time.Second
	quicIdle        = 5 * time.Second
	quicKeepAlive   = time.Second
	quicHandshake   = 5 * time.Second
	familySpare     = 10 * time.Minute // how long an address family that failed is left alone
	webSocketPing   = 30 * time.Second // the edge cuts WebSockets after 60 to 100 silent seconds
)

// features are what a connector says it can do. The last three are not what we need, and the edge
// may do without them; other people's connectors send all five, so these do until a shorter list
// was tried.
func features() []string {
	return []string{"allow_remote_config", "serialized_headers", "support_quic_eof", "support_datagram_v2", "management_logs"}
}

// rootURLs are where Cloudflare's documentation offers the roots that sign the edge's certificates.
func rootURLs() []string {
	const docs = "https://developers.cloudflare.com/ssl/static/"
	return []string{docs + "origin_ca_ecc_root.pem", docs + "origin_ca_rsa_root.pem", docs + "authenticated_origin_pull_ca.pem"}
}

// rootPins are the SHA-256 sums of those roots, which end in August and November 2029.
func rootPins() []string {
	return []string{
		"aa63697a22764b67b2134ce14cb5690ea336940b93986113f49545917832d80d",
		"d3c7e85c91707fc0a12abc5d88266747aa4fa8e7b162f633ffb3c9d989947620",
		"9a1ac2b4be15f9f27eee20a734cba4e9898f61001b3bd7c84b69b56a3e25a2b9",
	}
}
