//go:build integration

package container_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berth-gpu/berth/container"
)

// The addresses of the piece of internet that publicServer makes, RFC 5737.
const (
	publicAddr = "198.51.100.2"
	publicHost = "198.51.100.1" // the host's own leg there: public, and still the host
)

// sh runs a line on the host that must succeed.
func sh(t *testing.T, line string) {
	t.Helper()
	if out, err := exec.Command("sh", "-c", line).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", line, err, out)
	}
}

// publicServer makes a network namespace that stands for the internet, with a web server at
// publicAddr port 80.
func publicServer(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		need(t, "docker", fmt.Errorf("making a network namespace needs root"))
	}
	ns := "berth-test-net"
	clean := "ip link del berth-t0 2>/dev/null; ip netns del " + ns + " 2>/dev/null; true"
	sh(t, clean)
	t.Cleanup(func() { sh(t, clean) })
	sh(t, `set -e
		ip netns add `+ns+`
		ip link add berth-t0 type veth peer name berth-t1
		ip link set berth-t1 netns `+ns+`
		ip addr add `+publicHost+`/30 dev berth-t0
		ip link set berth-t0 up
		ip -n `+ns+` addr add `+publicAddr+`/30 dev berth-t1
		ip -n `+ns+` link set berth-t1 up
		ip -n `+ns+` link set lo up
		ip -n `+ns+` route add default via `+publicHost)
	ln, err := listenInside("/var/run/netns/"+ns, publicAddr+":80")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	go greet(ln, "public\n")
}

// listenInside listens in another network namespace: a socket belongs to the one in which its
// thread was when it was made.
func listenInside(ns, addr string) (net.Listener, error) {
	type result struct {
		ln  net.Listener
		err error
	}
	done := make(chan result)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		f, err := os.Open(ns)
		if err == nil {
			err = unix.Setns(int(f.Fd()), unix.CLONE_NEWNET)
		}
		if err != nil {
			done <- result{err: err}
			return
		}
		ln, err := net.Listen("tcp", addr)
		done <- result{ln, err}
	}()
	r := <-done
	return r.ln, r.err
}

// greet answers every connection with text.
func greet(ln net.Listener, text string) {
	for {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		_, _ = c.Write([]byte(text))
		_ = c.Close()
	}
}

// hostServer listens on every address of the host and returns the port.
func hostServer(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	go greet(ln, "host\n")
	_, port, _ := net.SplitHostPort(ln.Addr().String())
	return port
}

// dial tries to connect from inside; it returns what the server said, or "refused" when that
// came at once, or "silence".
func (b *box) dial(t *testing.T, host, port string) string {
	t.Helper()
	began := time.Now()
	out, _ := b.exec(t, "/bin/bash", "-c", "timeout 5 bash -c 'exec 3<>/dev/tcp/"+host+"/"+port+" && head -1 <&3'")
	switch {
	case !strings.Contains(out, "/dev/tcp"):
		return out
	case time.Since(began) < 4*time.Second:
		return "refused"
	}
	return "silence: " + out
}

// addressOf is a container's address in its network.
func addressOf(t *testing.T, name string) string {
	t.Helper()
	return docker(t, "inspect", "-f", "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}", name)
}

func gatewayOf(t *testing.T, name string) string {
	t.Helper()
	return docker(t, "inspect", "-f", "{{range .NetworkSettings.Networks}}{{.Gateway}}{{end}}", name)
}

func TestNetworkInside(t *testing.T) {
	e := newEngine(t)
	image := guestImage(t, e)
	publicServer(t)
	port := hostServer(t)
	other := run(t, e, container.Spec{Link: "netother", Image: image, Network: container.Internet})
	other.sh(t, "python3 -m http.server 8000 >/dev/null 2>&1 & sleep 1")

	hosts := []string{publicHost, "172.17.0.1"}
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addrs {
		if ip, _, _ := net.ParseCIDR(a.String()); ip.To4() != nil && !ip.IsLoopback() {
			hosts = append(hosts, ip.String())
		}
	}
	for _, network := range []container.Network{container.Internet, container.LAN} {
		t.Run(string(network), func(t *testing.T) {
			b := run(t, e, container.Spec{Link: "net" + string(network), Image: image, Network: network})
			if got := b.dial(t, publicAddr, "80"); got != "public" {
				t.Errorf("public server: got %q", got)
			}
			for _, h := range append(hosts, gatewayOf(t, boxName("net"+string(network)))) {
				if got := b.dial(t, h, port); got != "refused" {
					t.Errorf("host at %s: got %q, want refused", h, got)
				}
			}
			if got := b.dial(t, addressOf(t, boxName("netother")), "8000"); got != "refused" {
				t.Errorf("other box: got %q, want refused", got)
			}
			for _, a := range []string{"169.254.169.254", "100.100.100.200", "127.0.0.53", "224.0.0.1"} {
				if got := b.dial(t, a, "80"); got != "refused" {
					t.Errorf("%s: got %q, want refused", a, got)
				}
			}
			private := b.dial(t, "10.99.99.99", "80")
			if network == container.Internet && private != "refused" {
				t.Errorf("private address: got %q, want refused", private)
			}
			if out, code := b.exec(t, "/bin/sh", "-c", "ip addr add 10.0.0.1/8 dev eth0 || ping -c1 -W1 "+publicHost); code == 0 {
				t.Errorf("the guest may change the network or ping the host: %s", out)
			}
		})
	}
	t.Run("into a box", func(t *testing.T) {
		addr := net.JoinHostPort(addressOf(t, boxName("netother")), "8000")
		if c, err := net.DialTimeout("tcp", addr, time.Second); err == nil {
			_ = c.Close()
			t.Error("the host reaches a guest's server")
		}
		if got := other.sh(t, "curl -s -o /dev/null -w '%{http_code}' http://127.0.0.1:8000/"); got != "200" {
			t.Errorf("own server by loopback: %s", got)
		}
	})
	t.Run("none", func(t *testing.T) {
		b := run(t, e, container.Spec{Link: "netnone", Image: image, Network: container.NoNet})
		if got := b.sh(t, "ls /sys/class/net"); got != "lo" {
			t.Errorf("interfaces: %q", got)
		}
	})
	t.Run("names", func(t *testing.T) {
		if _, err := net.LookupHost("deb.debian.org"); err != nil {
			t.Skipf("the host resolves no names: %v", err)
		}
		b := run(t, e, container.Spec{Link: "netdns", Image: image, Network: container.Internet})
		b.sh(t, "getent hosts deb.debian.org")
	})
}

// boxName is how a link's container and network are called.
func boxName(link string) string { return "berth-" + link }
