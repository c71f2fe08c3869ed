// Package sftp serves the sftp subsystem inside a container: version 3 of the protocol
// (draft-ietf-secsh-filexfer-02) with OpenSSH's extensions (its PROTOCOL file, section 4).
//
// It runs as a process of its own, as the guest's user: the kernel decides what they may
// read and write, and every path is the container's own. There is one loop: a request is
// read, done, and answered before the next; answers leave together when no further request
// is waiting. It behaves as OpenSSH's sftp-server does, down to the order of a symlink's
// arguments. Start at serve.go.
package sftp
