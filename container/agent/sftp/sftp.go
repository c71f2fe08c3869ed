// Package sftp serves the sftp subsystem inside a container, as the guest's user: the kernel
// decides what they may read and write, and every path is the container's own.
package sftp

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/pkg/sftp"
)

// Options say what to serve on.
type Options struct {
	In  io.Reader // requests
	Out io.Writer // answers
	Dir string    // where relative paths start
}

// Serve answers requests until In ends.
func Serve(_ context.Context, o Options) error {
	srv, err := sftp.NewServer(stream{o.In, o.Out}, sftp.WithServerWorkingDirectory(o.Dir))
	if err != nil {
		return fmt.Errorf("serve sftp: %w", err)
	}
	if err := srv.Serve(); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("serve sftp: %w", err)
	}
	return nil
}

// stream joins the two directions; the process's end closes them.
type stream struct {
	io.Reader
	io.Writer
}

// Close does nothing.
func (stream) Close() error { return nil }
