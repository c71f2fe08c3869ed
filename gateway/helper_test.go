package gateway_test

import (
	"context"
	"net"
	"os"
	"testing"
	"time"
)

type netAddr = net.Addr

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func contextWithTimeout(t *testing.T, d time.Duration) (context.Context, context.CancelFunc) {
	t.Helper()
	return context.WithTimeout(t.Context(), d)
}
