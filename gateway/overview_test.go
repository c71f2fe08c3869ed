package gateway_test

import (
	"errors"
	"testing"

	"github.com/berth-gpu/berth/gateway"
	"github.com/berth-gpu/berth/gateway/gatewaytest"
	"github.com/berth-gpu/berth/gateway/link"
)

func TestOverview(t *testing.T) {
	g := gatewaytest.Start(t)
	ctx := t.Context()
	look := func() gateway.Overview {
		o, err := g.Overview(ctx, gateway.OverviewOptions{Events: 2, Ended: 1})
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	alive := g.Share(link.Terms{})
	for range 2 {
		if _, err := g.Revoke(ctx, g.Share(link.Terms{}).Link.ID); err != nil {
			t.Fatal(err)
		}
	}
	o := look()
	if len(o.Links) != 2 || o.Links[0].ID != alive.Link.ID || o.Links[1].State != link.Ended {
		t.Errorf("links: %+v", o.Links)
	}
	if len(o.Events) != 2 || o.HostKey.Fingerprint == "" {
		t.Errorf("events %v, host key %v", o.Events, o.HostKey)
	}
	if m := o.Machine; m.MemoryAll <= m.Memory || m.Memory <= 0 || m.DiskAll <= 0 || m.CPUs < 1 {
		t.Errorf("machine: %+v", m)
	}
	g.Boxes.Fail("Ping", errors.New("no daemon"))
	gatewaytest.Eventually(t, "a dead Docker shows", func() bool { return look().Docker != "" })
	g.Boxes.Fail("Ping", nil)
	gatewaytest.Eventually(t, "a Docker that is back shows", func() bool { return look().Docker == "" })
}
