// Package agent is the inner side of a container: PID 1, the gateway's hands.
//
// The gateway listens on a unix socket in a directory that the container sees
// read-only; the agent dials out and then answers requests on that one control
// connection. Every stream is made by the gateway and passed along with the request
// (SCM_RIGHTS, unix(7)): three pipes for a command, one socket for a terminal, for
// sftp or for a forward. Descriptors travel inwards only.
//
// frame.go is the protocol, shared with the gateway; serve.go the inner side;
// reap.go the only place that waits for children. The package promises the guest's
// processes nothing and trusts them with nothing: it is not dumpable and runs,
// once set up, without a single capability.
package agent
