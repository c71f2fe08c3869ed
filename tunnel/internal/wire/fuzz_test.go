package wire

import (
	"bytes"
	"testing"
)

// FuzzRead feeds any bytes to every decoder: it must return, and what it accepts must survive a
// second trip.
func FuzzRead(f *testing.F) {
	f.Add(Bootstrap(0))
	f.Add(EncodeCapability(0, 1))
	f.Add(EncodeCall(Call{Question: 1, Interface: Registrar, Target: Target{Promised: true}}, registration()))
	f.Add(resegment(EncodeCall(Call{Question: 1}, registration()), true))
	f.Add(EncodeResults(1, &Outcome{Cause: "busy", Retry: true}))
	f.Add(EncodeResults(1, &Outcome{Place: "LIS", Connection: make([]byte, 16)}))
	f.Add(EncodeException(1, ExceptionError{ExceptionFailed, "x"}))
	f.Add(EncodeResults(1, &Update{Version: 1, Config: []byte("{}")}))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := Read(bytes.NewReader(b))
		if err != nil {
			return
		}
		for _, body := range []Body{&Registration{}, &Outcome{}, &LocalConfig{}, &Empty{}, &Update{}, &Applied{}} {
			if m.Decode(body) != nil {
				continue
			}
			if _, err := Read(bytes.NewReader(EncodeResults(1, body))); err != nil {
				t.Fatalf("%T does not survive: %v", body, err)
			}
		}
	})
}

// FuzzStream feeds any bytes to the QUIC stream decoders.
func FuzzStream(f *testing.F) {
	f.Add(EncodeStreamRequest(StreamRequest{Dest: "https://x/", Meta: []Pair{{"HttpMethod", "GET"}}}))
	f.Add(EncodeStreamResponse(StreamResponse{Err: "no", Meta: []Pair{{"HttpStatus", "502"}}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = ReadStreamResponse(bytes.NewReader(b))
		r := bytes.NewReader(b)
		if _, err := ReadSignature(r); err == nil {
			_, _ = ReadStreamRequest(r)
		}
	})
}
