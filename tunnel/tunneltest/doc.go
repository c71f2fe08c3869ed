// Package tunneltest is a fake of Cloudflare's edge for tests: the servers a tunnel connector
// dials, the service that makes quick tunnels, and the public side a guest comes to. It runs
// in-process on loopback and is strict: whatever the real edge would reject, or is known to break
// on, is a violation that fails the test.
//
// It keeps its own list of names, so that a wrong fact in the connector does not follow it here.
// It promises nothing about the real edge beyond the protocol description it was written from.
//
// Begin with Start; faults are methods of Edge and Conn.
package tunneltest
