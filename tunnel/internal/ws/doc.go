// Package ws carries a byte stream over WebSocket messages (RFC 6455), as server and as
// client. It is our own because of what the doors need of it: one write for a frame of 64 KiB
// (a library that flushes every 4 KiB sends a TLS record and a system call for each), a buffer that is
// small while a guest is idle and grows with what they send, and messages of any kind and any
// fragmentation read as bytes, which is what cloudflared's client sends.
//
// What it does not do: extensions, UTF-8 checks of text, message borders.
package ws
