package container

import (
	"context"
	"errors"
	"net/netip"

	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
)

// ensureNetwork makes the bridge network of one link, or finds the one that is there.
func (e *Engine) ensureNetwork(ctx context.Context, link string) (network.Network, error) {
	have, err := e.networks(ctx, link)
	if err != nil || len(have) > 0 {
		return first(have), err
	}
	made, err := ask(ctx, op{"create network", slow}, func(ctx context.Context) (client.NetworkCreateResult, error) {
		return e.docker.NetworkCreate(ctx, boxName(link), client.NetworkCreateOptions{
			Driver: "bridge",
			Labels: map[string]string{LabelLink: link, LabelState: e.state},
			// One box a network; should a second ever be attached, it cannot talk to the first.
			Options: map[string]string{"com.docker.network.bridge.enable_icc": "false"},
		})
	})
	if err != nil {
		return network.Network{}, err
	}
	n, err := ask(ctx, op{"inspect network", quick}, func(ctx context.Context) (client.NetworkInspectResult, error) {
		return e.docker.NetworkInspect(ctx, made.ID, client.NetworkInspectOptions{})
	})
	return n.Network.Network, err
}

// networks lists our networks of one link. Docker before 25 lets two have one name, so they
// are found by label and named by id.
func (e *Engine) networks(ctx context.Context, link string) ([]network.Network, error) {
	return e.listNetworks(ctx, e.ours().Add("label", LabelLink+"="+link))
}

func (e *Engine) listNetworks(ctx context.Context, filters client.Filters) ([]network.Network, error) {
	r, err := ask(ctx, op{"list networks", quick}, func(ctx context.Context) (client.NetworkListResult, error) {
		return e.docker.NetworkList(ctx, client.NetworkListOptions{Filters: filters})
	})
	list := make([]network.Network, 0, len(r.Items))
	for _, n := range r.Items {
		list = append(list, n.Network)
	}
	return list, err
}

// removeNetwork removes one of our networks and says whether it is gone.
func (e *Engine) removeNetwork(ctx context.Context, id string) error {
	_, err := ask(ctx, op{"remove network", slow}, func(ctx context.Context) (client.NetworkRemoveResult, error) {
		return e.docker.NetworkRemove(ctx, id, client.NetworkRemoveOptions{})
	})
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}

// subnets are the address ranges of a network.
func subnets(n network.Network) []netip.Prefix {
	var list []netip.Prefix
	for _, c := range n.IPAM.Config {
		if c.Subnet.IsValid() {
			list = append(list, c.Subnet.Masked())
		}
	}
	return list
}

// gateways are the host's own addresses in a network.
func gateways(n network.Network) []netip.Prefix {
	var list []netip.Prefix
	for _, c := range n.IPAM.Config {
		if c.Gateway.IsValid() {
			list = append(list, netip.PrefixFrom(c.Gateway, c.Gateway.BitLen()))
		}
	}
	return list
}

func first[T any](list []T) T {
	var zero T
	if len(list) == 0 {
		return zero
	}
	return list[0]
}
