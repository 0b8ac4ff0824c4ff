package report

import (
	"cmp"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"wpptrace/compress/wpp"
	"wpptrace/query/names"
)

// A Label says in words what a symbol's path is: which path of which routine, and where its code
// is.
type Label struct {
	Symbol uint32 `json:"symbol"` // its number in this snapshot
	// base name of the file that the code is in
	Image string `json:"image"`
	// a name that no other routine of the snapshot has
	Routine string `json:"routine"`
	Path    uint64 `json:"path"` // its number in the routine
	// entry, loop (behind a back edge), call (behind one), pad (of an exception), extra (a cut that
	// keeps numbers small) or resume (its beginning is not known)
	Start string `json:"start"`
	// loop (a back edge), call, return, tail (a tail jump), noreturn, extra or cut (its end is not
	// known)
	End string `json:"end"`
	// that an execution runs; null: not known, for a trace does not say what its paths are
	Instructions *uint64 `json:"instructions"`
	// of the instructions run, link-time, in hex; absent for a path whose blocks are not known
	First string `json:"first_address,omitempty"`
	Last  string `json:"last_address,omitempty"` // of the last instruction run
	// of the routine's first instruction whose line is known; of inlined code, that of the call;
	// absent: not known
	File      string `json:"file,omitempty"`
	FirstLine int    `json:"first_line,omitempty"` // the lowest in that file
	LastLine  int    `json:"last_line,omitempty"`  // the highest in that file

	// whose code ran, in the order of their beginnings: each with those that it is in, the
	// innermost first
	Inlined [][]InlinedCall `json:"inlined,omitempty"`

	lowest, highest uint64 // addresses of instructions: a path may jump backwards
}

// An InlinedCall is one in whose place the code of a routine is: that is called, and where.
type InlinedCall struct {
	Routine string `json:"routine"`        // that is called; ?: not known
	File    string `json:"file,omitempty"` // of the call; absent: not known
	Line    int    `json:"line,omitempty"` // of the call; absent: not known
}

// Labels describe the paths of a snapshot. They remember what they have described: one goroutine
// may use them at a time.
type Labels struct {
	snapshot *wpp.Snapshot
	names    *names.Names
	known    map[uint32]*Label
}

// NewLabels returns the labels of a snapshot. It takes time linear in the routines.
func NewLabels(s *wpp.Snapshot) *Labels {
	return &Labels{s, names.Of(s), make(map[uint32]*Label)}
}

// Of describes a path, which a symbol of the snapshot stands for that is no mark. It takes time
// linear in the path's instructions, once for each path.
func (l *Labels) Of(sym uint32) *Label {
	if l.known[sym] == nil {
		l.known[sym] = labelOf(l.snapshot, l.names.Routine(l.snapshot.Symbols[sym].Routine), sym)
	}
	return l.known[sym]
}

// mostInlined is how many calls a label has: a file may have a stack of a thousand for each of
// a path's instructions.
const mostInlined = 64

// labelOf describes a path of a routine with that name; its lines are the lowest and the highest in
// the file where it begins.
func labelOf(s *wpp.Snapshot, routine string, sym uint32) *Label {
	p := &s.Symbols[sym]
	l := &Label{
		Symbol: sym, Image: s.ImageOf(sym).Base(), Routine: routine, Path: p.Path,
		Start: p.Start.String(), End: p.End.String(),
	}
	if p.Blocks != nil || s.Routines[p.Routine].Blocks != nil {
		n := s.SymbolCost(sym)
		l.Instructions = &n
	}
	for addr := range s.Instructions(sym) {
		if l.First == "" {
			l.First, l.lowest, l.highest = hex(addr), addr, addr
		}
		l.Last, l.lowest, l.highest = hex(addr), min(l.lowest, addr), max(l.highest, addr)
	}
	file, met := -1, map[int]bool{0: true}
	for piece := range s.Pieces(sym) {
		for span := range piece.Spans() {
			if !met[span.Call] && len(met) <= mostInlined {
				met[span.Call] = true
				l.Inlined = append(l.Inlined, callsOf(s, span.Call))
			}
			x := OwnPlace(s, span)
			if x.Line == 0 || file >= 0 && x.File != file {
				continue
			}
			if file < 0 {
				file = x.File
				l.File, l.FirstLine = s.Files[file], x.Line
			}
			l.FirstLine = min(l.FirstLine, x.Line)
			l.LastLine = max(l.LastLine, x.Last)
		}
	}
	return l
}

// OwnPlace is a span with its place in the routine that has the code: where something is inlined,
// that of the call.
func OwnPlace(s *wpp.Snapshot, span wpp.Span) wpp.Span {
	for c := range s.Stack(span.Call) {
		span.File, span.Line, span.Last = c.File, c.Line, c.Line
	}
	return span
}

// callsOf describes a call and those that it is in.
func callsOf(s *wpp.Snapshot, call int) (list []InlinedCall) {
	for c := range s.Stack(call) {
		x := InlinedCall{Routine: cmp.Or(names.Printable(c.Name), "?"), Line: c.Line}
		if c.Line > 0 {
			x.File = s.Files[c.File]
		}
		list = append(list, x)
	}
	return list
}

// Name is the routine and the path's number in it, at most width columns wide.
func (l *Label) Name(width int) string {
	number := "#" + strconv.FormatUint(l.Path, 10)
	return names.Shorten(l.Routine, width-len(number)) + number
}

// Where is the path's place, and in parentheses what is inlined there.
func (l *Label) Where() string {
	if names := l.inlinedNames(); names != "" {
		return l.Place() + " (" + names + ")"
	}
	return l.Place()
}

// whereIn is Where at most width columns wide.
func (l *Label) whereIn(width int) string {
	const least = len(" (f...)")
	where, place := l.Where(), l.Place()
	switch rest := width - utf8.RuneCountInString(place); {
	case utf8.RuneCountInString(where) <= width:
		return where
	case rest < least:
		return names.ShortenLeft(place, width)
	default:
		return place + string([]rune(where[len(place):])[:rest-len(names.Ellipsis)-1]) +
			names.Ellipsis + ")"
	}
}

// inlinedNames are those of the routines whose code is inlined in the path, each once and behind
// that which it is inlined in.
func (l *Label) inlinedNames() string {
	const widest = 30
	var list []string
	for _, calls := range l.Inlined {
		for _, c := range slices.Backward(calls) {
			if name := names.Shorten(c.Routine, widest); !slices.Contains(list, name) {
				list = append(list, name)
			}
		}
	}
	return strings.Join(list, ", ")
}

// Place is the path's place in the source, or in the image when its lines are not known.
func (l *Label) Place() string {
	switch {
	case l.File != "":
		return names.Printable(path.Base(l.File)) + ":" + lines(l.FirstLine, l.LastLine)
	case l.First != "":
		return names.Printable(l.Image) + " " + hex(l.lowest) + "-" + hex(l.highest)
	default:
		return names.Printable(l.Image)
	}
}

func lines(first, last int) string {
	if first == last {
		return strconv.Itoa(first)
	}
	return strconv.Itoa(first) + "-" + strconv.Itoa(last)
}
