//go:build integration

package container_test

import "testing"

// TestGuestImage makes the image that the other tests stand on. `make test` runs it first and
// by itself, because the first time takes a minute or two and shows its progress.
func TestGuestImage(t *testing.T) {
	e := newEngine(t)
	ref := guestImage(t, e)
	if there, err := e.ImagePresent(t.Context(), ref); !there || err != nil {
		t.Errorf("%s is present: %v, %v", ref, there, err)
	}
}
