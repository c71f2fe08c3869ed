package link

import (
	"crypto/sha256"
	"encoding/binary"
	"path/filepath"
	"testing"
	"time"
)

const manyLinks = 10_000

func benchHash(n int) Hash {
	return sha256.Sum256(binary.BigEndian.AppendUint64(nil, uint64(n)))
}

// bigBook has 10,000 links, every second one claimed by the guest "key".
func bigBook(b *testing.B) *Store {
	b.Helper()
	s, err := OpenStore(Options{Path: filepath.Join(b.TempDir(), "links.db")})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() })
	s.db.NoSync = true // only while the book is filled
	for n := range manyLinks {
		addLink(b, s, n)
		if n%2 == 0 {
			if _, _, err := s.Claim(benchHash(n), Guest{Key: []byte("key")}); err != nil {
				b.Fatal(err)
			}
		}
	}
	s.db.NoSync = false
	return s
}

func addLink(b *testing.B, s *Store, n int) {
	b.Helper()
	l := Link{
		ID: NewID(), Name: "bench", State: Open, ClaimBy: time.Now().Add(time.Hour),
		Terms:  Terms{Image: "debian", GPU: "none", For: time.Hour, Mounts: []Mount{{Source: "/a", Target: "/b"}}},
		Grants: []Grant{{Hash: benchHash(n)}},
	}
	if err := s.Add(l); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkClaim is the first claim of a link in a book of 10,000: two syncs of the disk.
func BenchmarkClaim(b *testing.B) {
	s := bigBook(b)
	n := manyLinks
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		n++
		addLink(b, s, n)
		b.StartTimer()
		if _, _, err := s.Claim(benchHash(n), Guest{Key: []byte("key")}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkClaimAgain is every further connection of a guest: no write.
func BenchmarkClaimAgain(b *testing.B) {
	s := bigBook(b)
	g := Guest{Key: []byte("key")}
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := s.Claim(benchHash(4000), g); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkByToken(b *testing.B) {
	s := bigBook(b)
	h := benchHash(4000)
	b.ReportAllocs()
	for b.Loop() {
		if _, _, ok := s.ByToken(h); !ok {
			b.Fatal("not found")
		}
	}
}

// BenchmarkByTokenWhileClaiming is the same while the disk is busy with another's claim.
func BenchmarkByTokenWhileClaiming(b *testing.B) {
	s := bigBook(b)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for n := 1; n < manyLinks; n += 2 {
			select {
			case <-stop:
				return
			default:
				_, _, _ = s.Claim(benchHash(n), Guest{})
			}
		}
	}()
	h := benchHash(4000)
	b.ReportAllocs()
	for b.Loop() {
		if _, _, ok := s.ByToken(h); !ok {
			b.Fatal("not found")
		}
	}
	close(stop)
	<-stopped
}

// BenchmarkNext is what the clock asks after each change.
func BenchmarkNext(b *testing.B) {
	s := bigBook(b)
	for b.Loop() {
		if s.Next().IsZero() {
			b.Fatal("nothing is due")
		}
	}
}

// BenchmarkOpen is the start of the gateway with 10,000 links on file.
func BenchmarkOpen(b *testing.B) {
	s := bigBook(b)
	path := s.db.Path()
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		again, err := OpenStore(Options{Path: path})
		if err != nil {
			b.Fatal(err)
		}
		if err := again.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkMint(b *testing.B) {
	for b.Loop() {
		Mint()
	}
}
