package main

import (
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/berth-gpu/berth/gateway/link"
)

// span is a duration flag that knows days.
type span time.Duration

// String writes the duration as Set reads it.
func (s *span) String() string {
	if *s == 0 {
		return ""
	}
	return time.Duration(*s).String()
}

// Type names the value in help.
func (*span) Type() string { return "duration" }

// Set reads 90m, 8h, 1h30m or 2d.
func (s *span) Set(text string) error {
	d, err := parseSpan(text)
	*s = span(d)
	return err
}

func parseSpan(text string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.ParseFloat(days, 64)
		if err == nil && n > 0 && n <= 366 {
			return time.Duration(n * 24 * float64(time.Hour)), nil
		}
	} else if d, err := time.ParseDuration(text); err == nil && d > 0 {
		return d, nil
	}
	return 0, fmt.Errorf("%q is no duration: write 90m, 8h or 2d", text)
}

// size is a flag of bytes: 512M, 16G.
type size int64

// String writes the size as Set reads it.
func (s *size) String() string {
	if *s == 0 {
		return ""
	}
	return strconv.FormatInt(int64(*s), 10)
}

// Type names the value in help.
func (*size) Type() string { return "size" }

// Set reads a number of bytes with an optional K, M, G or T, which count by 1024.
func (s *size) Set(text string) error {
	number := strings.ToUpper(strings.TrimSpace(text))
	number = strings.TrimSuffix(strings.TrimSuffix(number, "B"), "I")
	shift := 0
	if n := len(number); n > 0 {
		if i := strings.IndexByte("KMGT", number[n-1]); i >= 0 {
			shift, number = 10*(i+1), number[:n-1]
		}
	}
	v, err := strconv.ParseFloat(number, 64)
	bytes := v * float64(int64(1)<<shift)
	if err != nil || v <= 0 || bytes > 1<<60 {
		return fmt.Errorf("%q is no size: write 512M or 16G", text)
	}
	*s = size(bytes)
	return nil
}

// mounts is a repeatable flag of host paths.
type mounts []link.Mount

// String writes the mounts as they were given.
func (m *mounts) String() string {
	all := make([]string, len(*m))
	for i, one := range *m {
		all[i] = one.Source + ":" + one.Target
	}
	return strings.Join(all, ",")
}

// Type names the value in help.
func (*mounts) Type() string { return "SRC:DST[:rw]" }

// Set adds one mount, read-only unless it ends in :rw. Whether the host may lend that path is
// the container room's to say.
func (m *mounts) Set(text string) error {
	parts := strings.Split(text, ":")
	mount := link.Mount{}
	switch {
	case len(parts) == 3 && parts[2] == "rw":
		mount.Write = true
	case len(parts) == 3 && parts[2] == "ro", len(parts) == 2:
	default:
		return errors.New("write SRC:DST, or SRC:DST:rw for a path that the guest may change")
	}
	mount.Source, mount.Target = parts[0], parts[1]
	for _, p := range parts[:2] {
		if !path.IsAbs(p) || path.Clean(p) != strings.TrimSuffix(p, "/") {
			return fmt.Errorf("%q is no absolute path", p)
		}
	}
	*m = append(*m, mount)
	return nil
}
