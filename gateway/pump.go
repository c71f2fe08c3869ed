package gateway

import (
	"io"
)

// firstRead is what a silent channel holds ready; more is borrowed for as long as more comes.
const firstRead = 2 << 10

// pump copies src to dst until src ends. Errors of dst are returned, of src are its end.
func pump(dst io.Writer, src io.Reader) error {
	if p := newPuller(src); p != nil {
		return pumpPuller(dst, p)
	}
	return pumpChannel(dst, src)
}

func pumpPuller(dst io.Writer, p *puller) error {
	for {
		b, err := p.pull()
		if err != nil {
			return nil //nolint:nilerr // the end of src, however it came
		}
		_, err = dst.Write(b)
		p.release()
		if err != nil {
			return err
		}
	}
}

// pumpChannel is for an SSH channel, which cannot be asked whether something is there.
func pumpChannel(dst io.Writer, src io.Reader) error {
	small := make([]byte, firstRead)
	var large *[]byte
	defer func() {
		if large != nil {
			buffers.Put(large)
		}
	}()
	buf := small
	for {
		n, err := src.Read(buf)
		if n > 0 {
			if _, werr := dst.Write(buf[:n]); werr != nil {
				return werr
			}
		}
		if err != nil {
			return nil
		}
		switch {
		case n == len(small) && large == nil:
			large = buffers.Get().(*[]byte)
			buf = *large
		case n < len(small) && large != nil:
			buffers.Put(large)
			large, buf = nil, small
		}
	}
}
