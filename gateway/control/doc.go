// Package control carries the host's verbs (gateway/host.go) over a unix socket in the
// state directory, so that `berth share` and its kin reach the gateway that runs.
//
// The socket is for its owner alone (mode 0600, and the peer's user is checked). Every
// verb is one HTTP request; the answer is a stream of JSON lines: progress while
// something takes long, then the result or the error. An error keeps its class across
// the socket, so that the command line can say what to do.
package control
