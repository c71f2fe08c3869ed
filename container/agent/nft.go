package agent

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// installFilter puts the rules into the kernel in one transaction: all of them or none.
func installFilter(network string, l Limits) error {
	conn, err := nftables.New()
	if err != nil {
		return fmt.Errorf("open nftables: %w", err)
	}
	table := conn.AddTable(&nftables.Table{Family: nftables.TableFamilyINet, Name: "berth"})
	conn.FlushTable(table)
	for _, ch := range []struct {
		name   string
		hook   *nftables.ChainHook
		policy nftables.ChainPolicy
		rules  []rule
	}{
		{"input", nftables.ChainHookInput, nftables.ChainPolicyDrop, inbound()},
		{"forward", nftables.ChainHookForward, nftables.ChainPolicyDrop, nil},
		{"output", nftables.ChainHookOutput, nftables.ChainPolicyAccept, outbound(network, l)},
	} {
		chain := conn.AddChain(&nftables.Chain{
			Name: ch.name, Table: table, Type: nftables.ChainTypeFilter,
			Hooknum: ch.hook, Priority: nftables.ChainPriorityFilter, Policy: &ch.policy,
		})
		for _, r := range ch.rules {
			for _, exprs := range encode(r) {
				conn.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: exprs})
			}
		}
	}
	if err := conn.Flush(); err != nil {
		return fmt.Errorf("set nftables rules: %w", explain(err))
	}
	return nil
}

// explain adds what a host can do about the usual causes.
func explain(err error) error {
	switch {
	case errors.Is(err, unix.EPERM):
		return fmt.Errorf("%w (the runtime gave no NET_ADMIN for set-up)", err)
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.EPROTONOSUPPORT):
		return fmt.Errorf("%w (the kernel lacks nf_tables, nft_ct or nft_reject_inet; load them, or use --network none)", err)
	}
	return err
}

// isLo compares an interface's name, which the kernel pads with zeroes to IFNAMSIZ.
var isLo = &expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: append([]byte("lo"), make([]byte, unix.IFNAMSIZ-2)...)}

// encode turns a rule into nftables rules: one for each ICMPv6 type, and two where the refusal
// differs by protocol.
func encode(r rule) [][]expr.Any {
	m := match(r)
	if r.icmp6 {
		var all [][]expr.Any
		for _, t := range neighbour {
			one := append(cloned(m), l4proto(unix.IPPROTO_ICMPV6)...)
			all = append(all, append(one,
				&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: 0, Len: 1},
				&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{t}},
				&expr.Verdict{Kind: expr.VerdictAccept}))
		}
		return all
	}
	if r.verdict == accept {
		return [][]expr.Any{append(m, &expr.Verdict{Kind: expr.VerdictAccept})}
	}
	// A reset is what a TCP client takes for an answer; others understand ICMP.
	reset := append(cloned(m), l4proto(unix.IPPROTO_TCP)...)
	reset = append(reset, &expr.Reject{Type: unix.NFT_REJECT_TCP_RST})
	prohibited := append(cloned(m), &expr.Reject{
		Type: unix.NFT_REJECT_ICMPX_UNREACH, Code: unix.NFT_REJECT_ICMPX_ADMIN_PROHIBITED,
	})
	return [][]expr.Any{reset, prohibited}
}

func cloned(m []expr.Any) []expr.Any { return append([]expr.Any(nil), m...) }

// match is the rule's conditions.
func match(r rule) []expr.Any {
	var m []expr.Any
	if r.fromLo {
		m = append(m, &expr.Meta{Key: expr.MetaKeyIIFNAME, Register: 1}, isLo)
	}
	if r.toLo {
		m = append(m, &expr.Meta{Key: expr.MetaKeyOIFNAME, Register: 1}, isLo)
	}
	if r.established {
		m = append(m,
			&expr.Ct{Key: expr.CtKeySTATE, Register: 1},
			&expr.Bitwise{
				SourceRegister: 1, DestRegister: 1, Len: 4, Xor: binaryutil.NativeEndian.PutUint32(0),
				Mask: binaryutil.NativeEndian.PutUint32(expr.CtStateBitESTABLISHED | expr.CtStateBitRELATED),
			},
			&expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: binaryutil.NativeEndian.PutUint32(0)})
	}
	if r.to.IsValid() {
		m = append(m, destination(r.to)...)
	}
	if r.proto != 0 {
		m = append(m, l4proto(r.proto)...)
		m = append(m,
			&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2},
			&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: binaryutil.BigEndian.PutUint16(r.port)})
	}
	return m
}

func l4proto(proto byte) []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{proto}},
	}
}

// destination compares the address of a packet with a prefix.
func destination(p netip.Prefix) []expr.Any {
	family, offset := byte(unix.NFPROTO_IPV4), uint32(16)
	if p.Addr().Is6() {
		family, offset = unix.NFPROTO_IPV6, 24
	}
	size := p.Addr().BitLen() / 8
	mask := make([]byte, size)
	for i := range p.Bits() {
		mask[i/8] |= 0x80 >> (i % 8)
	}
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyNFPROTO, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{family}},
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: uint32(size)},
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: uint32(size), Mask: mask, Xor: make([]byte, size)},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: p.Masked().Addr().AsSlice()},
	}
}
