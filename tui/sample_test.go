package tui_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/berth-gpu/berth/gateway"
	"github.com/berth-gpu/berth/gateway/link"
)

// noon is the time in every picture.
var noon = time.Date(2026, 10, 5, 12, 0, 0, 0, time.UTC)

func at(d time.Duration) time.Time { return noon.Add(d) }

func ptr(t time.Time) *time.Time { return &t }

// sample is a machine that is lent to a few guests.
func sample() gateway.Overview {
	key := "SHA256:pLq0J3m8YH1xk2c7b9r6VtWnEoA5sDfGzXuQhTiRkM4"
	terms := link.Terms{Image: "berth-guest:12", GPU: "none", For: 8 * time.Hour, Sessions: 10, CPUs: 4, Memory: 16 << 30, Network: "internet"}
	ada := gateway.LinkView{
		ID: "k3f9a1c2", Name: "ada", State: link.Claimed, Image: terms.Image, GPU: "none", CreatedAt: at(-3 * time.Hour), ClaimBy: at(21 * time.Hour),
		ClaimedAt: ptr(at(-166 * time.Minute)), EndsAt: ptr(at(5*time.Hour + 14*time.Minute)), Guest: key, Container: "ready", Terms: terms,
		Sessions: []gateway.SessionView{
			{
				ID: "s1", Since: at(-64 * time.Minute), Address: "192.168.1.20:51324", Door: "direct", Key: key, Client: "OpenSSH_9.2p1",
				Channels: []string{"sftp", "shell"}, BytesIn: 412_000_000, BytesOut: 1_200_000_000,
			},
			{
				ID: "s2", Since: at(-3 * time.Minute), Address: "192.168.1.20:51399", Door: "direct", Key: key, Client: "OpenSSH_9.2p1",
				Channels: []string{"forward localhost:8888"}, BytesIn: 48_000, BytesOut: 1_900_000,
			},
		},
	}
	grace := gateway.LinkView{
		ID: "p7d2e8b4", Name: "grace", State: link.Claimed, Image: "pytorch/pytorch:latest", GPU: "none", CreatedAt: at(-9 * time.Hour), ClaimBy: at(15 * time.Hour),
		ClaimedAt: ptr(at(-472 * time.Minute)), EndsAt: ptr(at(8 * time.Minute)), Guest: "no key", Container: "ready", Terms: terms,
		Sessions: []gateway.SessionView{{
			ID: "s3", Since: at(-7 * time.Hour), Address: "[2001:db8::17]:40112", Door: "tunnel", Key: "no key", Client: "PuTTY_Release_0.81",
			Channels: []string{"shell"}, BytesIn: 91_000, BytesOut: 7_400_000,
		}},
	}
	edsger := gateway.LinkView{
		ID: "w1x5y9z3", Name: "edsger", State: link.Open, Image: terms.Image, GPU: "none", CreatedAt: at(-2 * time.Hour), ClaimBy: at(22 * time.Hour),
		Container: "ready", Terms: terms, Pending: "SHA256:Zk3v0mQ5tY7uB1nR8sXcWdEfGhJkLpOiUyTrEwQaSdF", Sessions: []gateway.SessionView{},
	}
	edsger.Terms.Approve = true
	ended := gateway.LinkView{
		ID: "b8c4d6e2", Name: "tony", State: link.Ended, Reason: link.Revoked, Image: terms.Image, GPU: "none", CreatedAt: at(-30 * time.Hour), ClaimBy: at(-6 * time.Hour),
		ClaimedAt: ptr(at(-29 * time.Hour)), EndsAt: ptr(at(-21 * time.Hour)), Guest: key, Container: "gone", Terms: terms, Sessions: []gateway.SessionView{},
	}
	return gateway.Overview{
		Now: noon, Host: "gpubox", Doors: []gateway.DoorState{{Name: "direct", State: "up", At: "192.168.1.5:2222"}, {Name: "tunnel", State: "connecting"}},
		HostKey: gateway.HostKey{Type: "ssh-ed25519", Fingerprint: "SHA256:wF2yQ8nV"},
		Machine: gateway.Machine{CPUs: 16, CPU: 0.42, Memory: 21 << 30, MemoryAll: 64 << 30, Disk: 610_000_000_000, DiskAll: 930_000_000_000, Load: 6.31},
		Links:   []gateway.LinkView{ada, grace, edsger, ended},
		Events: []gateway.Event{
			{Time: at(-21 * time.Hour), Event: "link.ended", Link: "b8c4d6e2", Detail: "revoked"},
			{Time: at(-166 * time.Minute), Event: "link.claimed", Link: "k3f9a1c2", Key: key, Address: "192.168.1.20:51324"},
			{Time: at(-2 * time.Hour), Event: "link.made", Link: "w1x5y9z3", Detail: "edsger"},
			{Time: at(-64 * time.Minute), Event: "session.opened", Link: "k3f9a1c2", Session: "s1", Address: "192.168.1.20:51324", Detail: "direct OpenSSH_9.2p1"},
			{Time: at(-3 * time.Minute), Event: "session.opened", Link: "k3f9a1c2", Session: "s2", Address: "192.168.1.20:51399", Detail: "direct OpenSSH_9.2p1"},
			{Time: at(-time.Minute), Event: "link.waiting", Link: "w1x5y9z3", Key: edsger.Pending, Address: "203.0.113.9:61010"},
		},
	}
}

// moments are overviews that lead up to sample, so that graphs and rates have a past.
func moments(n int) []gateway.Overview {
	list := make([]gateway.Overview, n)
	for i := range n {
		o := sample()
		back := n - 1 - i
		o.Now = noon.Add(-time.Duration(back) * 500 * time.Millisecond)
		if back > 0 {
			o.Machine.CPU = 0.45 + 0.4*math.Sin(float64(i)/6)
		}
		s := &o.Links[0].Sessions[0]
		s.BytesIn -= int64(back) * 48_000_000
		list[i] = o
	}
	return list
}

// nasty names are what a hostile or unlucky host or guest may put on the screen.
func nastyNames() []string {
	return []string{
		"漢字の名前", "👨‍👩‍👧‍👦 family", "🇩🇪🇫🇷 flags", "e\u0301\u0302\u0303\u0304\u0305zalgo\u0336", "שלום עולם", "\u202eevil\u202c", "a\x1b[2J\x1b[Hb",
		"\x1b]0;title\x07x", "line\nbreak", "tab\there", "bell\a", "nul\x00", "\u200b\u200d\u2060zero", "…", string([]byte{0xff, 0xfe, 'x'}),
		"ＦＵＬＬｗｉｄｔｈ", "👍🏽 tone", "☺️ vs16", "ไทยำ", "\u0600arabic\u06dd", "\x9b31mC1", "\u00adsoft", "1️⃣ keycap", "क्षि", fmt.Sprintf("%0300d", 7), "",
	}
}

// twin is a gateway that answers with what the test put in it.
type twin struct {
	over  gateway.Overview
	err   error
	asked []string
}

func (h *twin) note(s string) error { h.asked = append(h.asked, s); return h.err }

func (h *twin) Overview(context.Context, gateway.OverviewOptions) (gateway.Overview, error) {
	return h.over, h.err
}

func (h *twin) Receipts(context.Context) ([]gateway.Receipt, error) { return nil, h.err }

func (h *twin) Share(_ context.Context, r gateway.ShareRequest) (gateway.ShareResult, error) {
	return gateway.ShareResult{}, errors.Join(h.note("share "+r.Name), h.err)
}

func (h *twin) Revoke(_ context.Context, ref string) (gateway.LinkView, error) {
	return gateway.LinkView{Container: "gone"}, h.note("revoke " + ref)
}

func (h *twin) Extend(_ context.Context, ref string, by time.Duration) (gateway.LinkView, error) {
	return gateway.LinkView{ID: ref, EndsAt: ptr(at(by))}, h.note("extend " + ref + " " + by.String())
}

func (h *twin) Kick(_ context.Context, ref string) (int, error) { return 1, h.note("kick " + ref) }

func (h *twin) Approve(_ context.Context, ref string) (gateway.LinkView, error) {
	return gateway.LinkView{ID: ref}, h.note("approve " + ref)
}
