// Package tunnel is how guests reach the gateway: its doors. A door hands out connections
// and knows the lines that a guest types to come through it; it knows nothing of links, and
// the bytes that pass through it are SSH, end to end.
package tunnel
