package screen

import (
	"bytes"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The operating system commands that are followed.
const (
	oscBoth                                 = 0 // icon name and title
	oscIcon                                 = 1
	oscTitle                                = 2
	oscPalette                              = 4
	oscDirectory                            = 7
	oscLink                                 = 8
	oscForeground, oscBackground, oscCursor = 10, 11, 12
	oscReset                                = 100 // added to 4, 10, 11 or 12
)

// osc acts on an operating system command.
func (s *Screen) osc(cmd int, data []byte) {
	_, rest, found := bytes.Cut(data, []byte{';'})
	if len(data) >= maxString || !utf8.Valid(rest) {
		return
	}
	text := strings.Map(printable, string(rest))
	switch cmd {
	case oscBoth:
		s.setString(oscIcon, text)
		s.setString(oscTitle, text)
	case oscIcon, oscTitle, oscDirectory:
		s.setString(cmd, text)
	case oscForeground, oscBackground, oscCursor:
		if text != "?" {
			s.setString(cmd, text)
		}
	case oscForeground + oscReset, oscBackground + oscReset, oscCursor + oscReset:
		delete(s.strings, cmd-oscReset)
	case oscPalette:
		s.setPalette(text)
	case oscPalette + oscReset:
		s.resetPalette(text, found)
	case oscLink:
		if text == ";" || !strings.Contains(text, ";") || strings.HasSuffix(text, ";") {
			text = ""
		}
		st := s.pen
		st.link = text
		s.setPen(st)
	}
}

// printable drops control characters, which would end the string where it is sent again.
func printable(r rune) rune {
	if unicode.IsControl(r) {
		return -1
	}
	return r
}

func (s *Screen) setString(cmd int, text string) {
	if s.strings == nil {
		s.strings = make(map[int]string)
	}
	s.strings[cmd] = text
}

// setPalette reads pairs of a colour's number and its value.
func (s *Screen) setPalette(text string) {
	for fields := strings.Split(text, ";"); len(fields) >= 2; fields = fields[2:] {
		n, err := strconv.Atoi(fields[0])
		if err != nil || n < 0 || n > 255 || fields[1] == "?" || len(fields[1]) > 64 {
			continue
		}
		if s.palette == nil {
			s.palette = make(map[int]string)
		}
		s.palette[n] = fields[1]
	}
}

func (s *Screen) resetPalette(text string, some bool) {
	if !some || text == "" {
		s.palette = nil
		return
	}
	for _, field := range strings.Split(text, ";") {
		if n, err := strconv.Atoi(field); err == nil {
			delete(s.palette, n)
		}
	}
}
