// Package gateway is the SSH server on the host's machine: it lets a guest in by their
// link, carries their channels to the agent in the link's container, and ends links.
//
// It promises that a link is claimed only by a completed authentication, that a
// refusal is one plain line, that an end is announced and leaves a receipt, and that
// no guest can reach the host or another guest through it. It does not talk to
// Docker itself (container does) and does not know what door a connection used
// beyond its name.
//
// Start at gateway.go; a guest's way in is auth.go, then session.go; a host's verbs
// are host.go, which both the command line (control) and the dashboard call.
package gateway
