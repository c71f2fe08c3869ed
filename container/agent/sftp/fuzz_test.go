package sftp

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"testing"
)

// harmless are the requests that change nothing outside the conversation, whatever they name:
// those alone may be thrown at the machine that tests.
var harmless = []byte{
	typeInit, typeClose, typeRead, typeWrite, typeLstat, typeFstat, typeFsetstat, typeReaddir, typeRealpath, typeStat, typeReadlink,
}

// FuzzServe sends arbitrary requests and checks that the server neither panics nor answers
// with anything but whole packets, one for each request.
func FuzzServe(f *testing.F) {
	f.Add([]byte{0, 0, 0, 3})
	f.Add([]byte{1, 0, 0, 0, 1, 0, 0, 0, 1, '1'})
	f.Add([]byte{2, 0, 0, 0, 7, 0, 0, 0, 1, '1', 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff})
	f.Add([]byte{9, 0, 0, 0, 1, 0, 0, 0, 4, '/', 't', 'm', 'p'})
	f.Fuzz(func(t *testing.T, data []byte) {
		var in bytes.Buffer
		requests := 0
		for len(data) > 1 {
			n := min(len(data)-1, 1+int(data[0])%40)
			body := append([]byte{harmless[int(data[0])%len(harmless)]}, data[1:n+1]...)
			_ = binary.Write(&in, binary.BigEndian, uint32(len(body)))
			in.Write(body)
			data = data[n+1:]
			requests++
		}
		var out bytes.Buffer
		err := Serve(t.Context(), Options{In: &in, Out: &out, Dir: t.TempDir()})
		answers := 0
		for {
			var n uint32
			if err := binary.Read(&out, binary.BigEndian, &n); errors.Is(err, io.EOF) {
				break
			}
			if n == 0 || int(n) > out.Len() {
				t.Fatalf("an answer of %d bytes with %d left", n, out.Len())
			}
			out.Next(int(n))
			answers++
		}
		if err == nil && answers != requests {
			t.Fatalf("%d answers to %d requests", answers, requests)
		}
	})
}

// FuzzAttrs reads arbitrary attributes.
func FuzzAttrs(f *testing.F) {
	f.Add([]byte{0x80, 0, 0, 0, 0xff, 0xff, 0xff, 0xff})
	f.Add([]byte{0, 0, 0, 15, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0o244, 0, 0, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		d := decoder{buf: data}
		readAttrs(&d)
		if len(d.buf) > len(data) {
			t.Fatal("the decoder gained bytes")
		}
	})
}
