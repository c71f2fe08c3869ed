package screen

import (
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/ansi/parser"
)

// The largest screen that is kept; a terminal that claims to be larger is cut.
const (
	MaxCols = 1024
	MaxRows = 512
)

// HistoryBytes is about how much is kept of what scrolled off, as text with its colours.
const HistoryBytes = 128 << 10

// maxString bounds titles, links and the other strings that a program may set.
const maxString = 2048

// Screen is what a terminal shows. It is not safe for concurrent use.
type Screen struct {
	cols, rows int
	main       grid
	alt        grid // lines are nil until a program used it
	g          *grid
	tables     tables
	pen        style
	penID      uint32
	lastRune   rune // for REP

	sets    [4]byte // what is designated as G0 to G3: B, 0 or A
	shift   int     // which of them is in use
	modes   modes
	strings map[int]string // title and colours, by their OSC number; 4 is in palette
	palette map[int]string
	cursor  int // DECSCUSR
	keys    int // xterm's modifyOtherKeys

	history history
	reply   []byte // answers to what the program asked
	part    []byte // the beginning of a rune
	parser  *ansi.Parser
	broken  int
}

// New returns an empty screen.
func New(cols, rows int) *Screen {
	s := &Screen{parser: new(ansi.Parser)}
	s.cols, s.rows = bounded(cols, rows)
	s.parser.SetParamsSize(parser.MaxParamsSize)
	s.parser.SetDataSize(maxString)
	s.parser.SetHandler(ansi.Handler{Execute: s.control, HandleCsi: s.csi, HandleEsc: s.esc, HandleOsc: s.osc, Print: s.print})
	s.reset()
	return s
}

func bounded(cols, rows int) (int, int) {
	return max(1, min(cols, MaxCols)), max(1, min(rows, MaxRows))
}

// reset is RIS: everything as at the start but for the history.
func (s *Screen) reset() {
	s.main, s.alt = newGrid(s.rows), grid{}
	s.g = &s.main
	s.tables = newTables()
	s.pen, s.penID, s.lastRune = style{}, 0, 0
	s.sets, s.shift = plainSets, 0
	s.modes = newModes()
	s.strings, s.palette = nil, nil
	s.cursor, s.keys = 0, 0
}

var plainSets = [4]byte{'B', 'B', 'B', 'B'}

// Size returns the columns and rows.
func (s *Screen) Size() (cols, rows int) { return s.cols, s.rows }

// Title is what the program called its window; it may hold any character.
func (s *Screen) Title() string { return s.strings[oscTitle] }

// Alt reports whether a full-screen program is on: it uses the alternate screen.
func (s *Screen) Alt() bool { return s.g == &s.alt }

// TakeReply returns what the terminal would have answered since the last call to the questions
// that programs ask of it.
func (s *Screen) TakeReply() []byte {
	r := s.reply
	s.reply = nil
	return r
}

// Write shows p. It always takes all of it. Should a sequence ever make the model panic, the
// screen is emptied and goes on from there.
func (s *Screen) Write(p []byte) (int, error) {
	defer func() {
		if recover() != nil {
			s.broken++
			s.part = nil
			s.parser.Reset()
			s.reset()
		}
	}()
	s.write(p)
	return len(p), nil
}

func (s *Screen) write(p []byte) {
	for i := 0; i < len(p); {
		switch {
		case len(s.part) > 0:
			i += s.finishRune(p[i:])
		case s.parser.State() != parser.GroundState || p[i] < ' ' || p[i] == 0x7f:
			s.parser.Advance(p[i])
			i++
		case p[i] < 0x7f:
			n := 1
			for i+n < len(p) && p[i+n] >= ' ' && p[i+n] < 0x7f {
				n++
			}
			s.ascii(p[i : i+n])
			i += n
		case !utf8.FullRune(p[i:]):
			s.part = append(s.part, p[i:]...)
			return
		default:
			r, n := utf8.DecodeRune(p[i:])
			s.print(r)
			i += n
		}
	}
}

// finishRune completes a rune that was cut by the end of an earlier write, and returns how many
// bytes of p it took.
func (s *Screen) finishRune(p []byte) int {
	had := len(s.part)
	s.part = append(s.part, p[:min(len(p), utf8.UTFMax-had)]...)
	if !utf8.FullRune(s.part) {
		return len(p)
	}
	r, n := utf8.DecodeRune(s.part)
	s.part = s.part[:0]
	s.print(r)
	if n < had { // invalid: its first byte stood alone, the others are continuations that stand alone too
		for range had - n {
			s.print(utf8.RuneError)
		}
		return 0
	}
	return n - had
}

// Resize changes the size. Lines that do not fit above the cursor go into the history.
func (s *Screen) Resize(cols, rows int) {
	cols, rows = bounded(cols, rows)
	if cols == s.cols && rows == s.rows {
		return
	}
	if over := s.main.cur.y - (rows - 1); over > 0 {
		for _, l := range s.main.lines[:over] {
			s.history.add(&s.tables, l)
		}
		s.main.scroll(0, s.rows, over, s.cols, 0)
		s.main.cur.y -= over
		s.main.saved.y = max(0, s.main.saved.y-over)
	}
	s.cols, s.rows = cols, rows
	s.main.resize(cols, rows)
	if s.alt.lines != nil {
		s.alt.resize(cols, rows)
	}
}

// Broken counts the panics that Write survived.
func (s *Screen) Broken() int { return s.broken }

// History is what scrolled off, the newest HistoryBytes of it, as lines of text and SGR
// sequences.
func (s *Screen) History() []byte { return s.history.lines() }
