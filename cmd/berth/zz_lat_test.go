//go:build lat

package main

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
)

func TestLat(t *testing.T) {
	text, _ := os.ReadFile("/tmp/interop-x/key")
	key, _ := ssh.ParsePrivateKey(text)
	for _, s := range []struct{ user, addr string }{{os.Getenv("TOK"), "127.0.0.1:22322"}, {"guest", "127.0.0.1:22422"}} {
		c, err := ssh.Dial("tcp", s.addr, &ssh.ClientConfig{User: s.user, Auth: []ssh.AuthMethod{ssh.PublicKeys(key)}, HostKeyCallback: ssh.InsecureIgnoreHostKey()})
		if err != nil {
			t.Fatal(err)
		}
		for _, cmd := range []string{"true", "exec /bin/true"} {
			var open, start, wait []float64
			for range 200 {
				t0 := time.Now()
				sess, err := c.NewSession()
				if err != nil {
					t.Fatal(err)
				}
				t1 := time.Now()
				if err := sess.Start(cmd); err != nil {
					t.Fatal(err)
				}
				t2 := time.Now()
				if err := sess.Wait(); err != nil {
					t.Fatal(err)
				}
				t3 := time.Now()
				open = append(open, float64(t1.Sub(t0).Microseconds()))
				start = append(start, float64(t2.Sub(t1).Microseconds()))
				wait = append(wait, float64(t3.Sub(t2).Microseconds()))
			}
			p := func(v []float64) float64 { slices.Sort(v); return v[len(v)/2] }
			fmt.Printf("%s %-15s open %.0f start %.0f wait %.0f µs\n", s.addr, cmd, p(open), p(start), p(wait))
		}
	}
}
