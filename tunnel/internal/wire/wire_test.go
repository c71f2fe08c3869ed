package wire

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"
)

// unhex reads bytes written as spaced hex.
func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func same(t *testing.T, got, want []byte) {
	t.Helper()
	if !bytes.Equal(got, want) {
		t.Fatalf("bytes differ\n got %x\nwant %x", got, want)
	}
}

// count returns n bytes counting up from first.
func count(first byte, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = first + byte(i)
	}
	return b
}

const goldenBootstrap = `00000000 05000000 0000000001000100 0800000000000000 0000000001000100 0000000000000000 0000000000000000`

const goldenRegister = `00000000 2a000000
	0000000001000100 0200000000000000 0000000003000300 0100000000000000 9754e87fec9516f7 0000000000000000
	0800000001000100 1400000000000200 0000000000000000 0000000001000000 0000000001000100 0000000000000000
	0000000000000000 0400000001000300 0000000000000000 0200000000000000 0800000000000200 1500000082000000
	1800000001000200 050000002a000000 0500000022000000 6163637400000000 0102030400000000 1011121314151617
	18191a1b1c1d1e1f 0000010000000000 0400000000000400 3500000022000000 0d00000082000000 110000000e000000
	1d00000012000000 1d00000062000000 2021222324252627 28292a2b2c2d2e2f 010000009a000000 73657269616c697a
	65645f6865616465 7273000000000000 3100000000000000 6c696e75785f616d 6436340000000000 0a00000200000000`

const goldenCapability = `00000000 0a000000
	0000000001000100 0300000000000000 0000000002000100 0000000001000000 0000000000000000
	0000000000000200 0300000000000000 0100000017000000 0400000001000100
	0100000000000000 0000000000000000`

func registration() *Registration {
	return &Registration{
		Account: "acct", Secret: []byte{1, 2, 3, 4}, Tunnel: count(0x10, 16), Index: 2, Client: count(0x20, 16),
		Features: []string{"serialized_headers"}, Version: "1", Arch: "linux_amd64", LocalIP: []byte{10, 0, 0, 2}, Attempts: 1,
	}
}

// The golden bytes were accepted by the reference implementation.
func TestGolden(t *testing.T) {
	same(t, Bootstrap(0), unhex(t, goldenBootstrap))
	call := Call{Question: 1, Interface: Registrar, Method: MethodRegister, Target: Target{Promised: true}}
	same(t, EncodeCall(call, registration()), unhex(t, goldenRegister))
	same(t, Finish(0)[8:], unhex(t, `0000000001000100 0400000000000000 0000000001000000 0000000001000000`))
}

func TestGoldenCapability(t *testing.T) {
	got := EncodeCapability(0, 0)
	want := unhex(t, goldenCapability)
	want = append(want, make([]byte, len(got)-len(want))...)
	le.PutUint32(want[4:], uint32(len(want)/8-1))
	same(t, got, want)
}

func TestRegistrationRoundTrip(t *testing.T) {
	m, err := Read(bytes.NewReader(unhex(t, goldenRegister)))
	if err != nil {
		t.Fatal(err)
	}
	want := Call{Question: 1, Interface: Registrar, Target: Target{Promised: true}}
	if m.Kind != KindCall || m.Call != want {
		t.Fatalf("got %+v", m)
	}
	var r Registration
	if err := m.Decode(&r); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(&r, registration()) {
		t.Fatalf("got %+v", r)
	}
}

func TestOutcome(t *testing.T) {
	for name, want := range map[string]Outcome{
		"accepted": {Connection: count(1, 16), Place: "LIS"},
		"remote":   {Connection: count(1, 16), Place: "TST", RemotelyManaged: true},
		"refused":  {Cause: "busy", Retry: true, RetryAfter: 3 * time.Second},
		"for good": {Cause: "Unauthorized: Invalid tunnel secret"},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := Read(bytes.NewReader(EncodeResults(7, &want)))
			if err != nil {
				t.Fatal(err)
			}
			var got Outcome
			if err := m.Decode(&got); err != nil {
				t.Fatal(err)
			}
			if m.ID != 7 || m.Kind != KindReturn || !reflect.DeepEqual(got, want) {
				t.Fatalf("got %+v in %+v", got, m)
			}
		})
	}
}

func TestGoldenOutcome(t *testing.T) {
	refused := EncodeResults(1, &Outcome{Cause: "busy", Retry: true, RetryAfter: 3 * time.Second})
	tail := unhex(t, `0000000000000000 0000000002000100 005ed0b200000000 0100000000000000 010000002a000000 6275737900000000`)
	if !bytes.HasSuffix(refused, tail) {
		t.Fatalf("refused: %x does not end in %x", refused, tail)
	}
	accepted := EncodeResults(1, &Outcome{Connection: count(1, 16), Place: "LIS"})
	want := unhex(t, `0000000001000100 0300000000000000 0000000002000100 0100000001000000 0000000000000000
		0000000000000200 0400000000000100 0000000000000000 0000000001000100 0100000000000000
		0000000001000200 0000000000000000 0500000082000000 0900000022000000`)
	want = append(append(want, count(1, 16)...), unhex(t, `4c49530000000000`)...)
	same(t, accepted[8:], want)
}

func TestOtherBodies(t *testing.T) {
	for name, c := range map[string]struct{ in, out Body }{
		"local config": {&LocalConfig{JSON: []byte(`{}`)}, &LocalConfig{}},
		"update":       {&Update{Version: -3, Config: []byte("x")}, &Update{}},
		"applied":      {&Applied{Version: 9, Err: "no"}, &Applied{}},
		"empty":        {&Empty{}, &Empty{}},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := Read(bytes.NewReader(EncodeResults(1, c.in)))
			if err != nil {
				t.Fatal(err)
			}
			if err := m.Decode(c.out); err != nil || !reflect.DeepEqual(c.in, c.out) {
				t.Fatalf("got %+v, %v", c.out, err)
			}
		})
	}
}

func TestExceptionsAndCapabilities(t *testing.T) {
	m, err := Read(bytes.NewReader(EncodeException(4, ExceptionError{ExceptionUnimplemented, "no such method"})))
	if err != nil || m.ID != 4 || m.Exception == nil || m.Exception.Kind != ExceptionUnimplemented {
		t.Fatalf("got %+v, %v", m, err)
	}
	if got := m.Exception.Error(); got != "rpc exception: no such method" {
		t.Fatalf("got %q", got)
	}
	m, err = Read(bytes.NewReader(EncodeAbort(ExceptionError{Reason: "bye"})))
	if err != nil || m.Kind != KindAbort || m.Exception.Reason != "bye" {
		t.Fatalf("got %+v, %v", m, err)
	}
	m, err = Read(bytes.NewReader(EncodeCapability(0, 5)))
	if err != nil || m.Capability == nil || *m.Capability != 5 {
		t.Fatalf("got %+v, %v", m, err)
	}
	m, err = Read(bytes.NewReader(Finish(6)))
	if err != nil || m.Kind != KindFinish || m.ID != 6 || !m.KeepCaps {
		t.Fatalf("got %+v, %v", m, err)
	}
}

// resegment moves the object behind the root pointer of a one-segment message into a second
// segment, reached by a far pointer; double asks for the two-word landing pad.
func resegment(frame []byte, double bool) []byte {
	seg := frame[8:]
	root := le.Uint64(seg)
	var first, second []byte
	if double {
		first = make([]byte, 8)
		le.PutUint64(first, 2|4|1<<32) // far, two-word pad, at word 0 of segment 1
		pad := make([]byte, 16)
		le.PutUint64(pad, 2|2<<3|1<<32)                 // the object is at word 2 of segment 1
		le.PutUint64(pad[8:], root&^uint64(0xfffffffc)) // the shape, without an offset
		second = append(pad, seg[8:]...)
	} else {
		first = make([]byte, 8)
		le.PutUint64(first, 2|1<<32)
		second = append([]byte(nil), seg...)
	}
	head := make([]byte, 16)
	le.PutUint32(head, 1)
	le.PutUint32(head[4:], uint32(len(first)/8))
	le.PutUint32(head[8:], uint32(len(second)/8))
	return append(append(head, first...), second...)
}

func TestFarPointers(t *testing.T) {
	for name, double := range map[string]bool{"single": false, "double": true} {
		t.Run(name, func(t *testing.T) {
			m, err := Read(bytes.NewReader(resegment(unhex(t, goldenRegister), double)))
			if err != nil {
				t.Fatal(err)
			}
			var r Registration
			if err := m.Decode(&r); err != nil || !reflect.DeepEqual(&r, registration()) {
				t.Fatalf("got %+v, %v", r, err)
			}
		})
	}
}

func TestMalformed(t *testing.T) {
	boot := unhex(t, goldenBootstrap)
	change := func(at int, v uint64) []byte {
		b := bytes.Clone(boot)
		le.PutUint64(b[at:], v)
		return b
	}
	for name, b := range map[string][]byte{
		"too many segments":    {0xff, 0, 0, 0, 0, 0, 0, 0},
		"too long":             {0, 0, 0, 0, 0xff, 0xff, 0xff, 0x7f},
		"root outside":         change(8, 0x00010001_0000ffff&^3),
		"root before":          change(8, 0x00010001_fffffff0),
		"root is a list":       change(8, 1|2<<32|8<<35),
		"far to nowhere":       change(8, 2|9<<32),
		"far to itself":        change(8, 2),
		"body is a capability": change(24, 3),
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Read(bytes.NewReader(b)); !errors.Is(err, ErrMalformed) {
				t.Fatalf("got %v", err)
			}
		})
	}
	for n := 1; n < len(boot); n++ {
		if _, err := Read(bytes.NewReader(boot[:n])); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatalf("cut at %d: %v", n, err)
		}
	}
	if _, err := Read(bytes.NewReader(nil)); !errors.Is(err, io.EOF) {
		t.Fatalf("empty: %v", err)
	}
}

func TestStreams(t *testing.T) {
	req := StreamRequest{Dest: "https://x.example/a?b=c", Kind: StreamWebSocket, Meta: []Pair{{"HttpMethod", "GET"}, {"HttpHost", "x.example"}}}
	r := bytes.NewReader(EncodeStreamRequest(req))
	if sig, err := ReadSignature(r); err != nil || sig != SignatureData {
		t.Fatalf("signature %x, %v", sig, err)
	}
	if got, err := ReadStreamRequest(r); err != nil || !reflect.DeepEqual(got, req) {
		t.Fatalf("got %+v, %v", got, err)
	}
	resp := StreamResponse{Meta: []Pair{{"HttpStatus", "101"}}}
	b := EncodeStreamResponse(resp)
	if got, err := ReadStreamResponse(bytes.NewReader(b)); err != nil || !reflect.DeepEqual(got, resp) {
		t.Fatalf("got %+v, %v", got, err)
	}
	b[7] = '2'
	if _, err := ReadStreamResponse(bytes.NewReader(b)); !errors.Is(err, ErrMalformed) {
		t.Fatalf("other version: %v", err)
	}
}

// The start of an answer captured from the reference implementation: seven pairs, no error.
func TestStreamShape(t *testing.T) {
	b := EncodeStreamResponse(StreamResponse{Meta: make([]Pair, 7)})
	want := unhex(t, `0000000000000200 0000000000000000 0100000077000000 1c00000000000200`)
	same(t, b[16:16+len(want)], want)
	b = EncodeStreamRequest(StreamRequest{Dest: strings.Repeat("u", 33)})
	want = unhex(t, `0000000001000200 0000000000000000 0500000012010000`)
	same(t, b[16:16+len(want)], want)
}
