package query

import (
	"cmp"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"wpptrace/compress/wpp"
)

// A label says in words what a symbol's path is: which path of which routine, and where its code
// is.
type label struct {
	Symbol       uint32 `json:"symbol"`
	Image        string `json:"image"`
	Routine      string `json:"routine"`
	Path         uint64 `json:"path"`
	Start        string `json:"start"`
	End          string `json:"end"`
	Instructions uint64 `json:"instructions"`
	First        string `json:"first_address,omitempty"` // of the instructions run, in hex; "" for a path without blocks
	Last         string `json:"last_address,omitempty"`
	File         string `json:"file,omitempty"` // of the routine's first instruction whose line is known; of inlined code, that of the call
	FirstLine    int    `json:"first_line,omitempty"`
	LastLine     int    `json:"last_line,omitempty"`

	Inlined [][]inlinedCall `json:"inlined,omitempty"` // whose code ran, in the order of their beginnings: each with those that it is in, the innermost first

	lowest, highest uint64 // addresses of instructions: a path may jump backwards
}

// An inlinedCall is one in whose place the code of a routine is: that is called, and where.
type inlinedCall struct {
	Routine string `json:"routine"`
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"`
}

// labels describes the paths of a snapshot.
type labels struct {
	snapshot *wpp.Snapshot
	names    []string // of the routines
	known    map[uint32]*label
}

func newLabels(s *wpp.Snapshot) *labels {
	return &labels{s, routineNames(s), make(map[uint32]*label)}
}

// of describes a path.
func (l *labels) of(sym uint32) *label {
	if l.known[sym] == nil {
		l.known[sym] = labelOf(l.snapshot, l.names[l.snapshot.Symbols[sym].Routine], sym)
	}
	return l.known[sym]
}

// mostInlined is how many calls a label tells of: a file may have a stack of a thousand for each of
// a path's instructions.
const mostInlined = 64

// labelOf describes a path of a routine with that name; its lines are the lowest and the highest in
// the file where it begins.
func labelOf(s *wpp.Snapshot, routine string, sym uint32) *label {
	p := &s.Symbols[sym]
	l := &label{
		Symbol: sym, Image: s.ImageOf(sym).Base(), Routine: routine, Path: p.Path,
		Start: p.Start.String(), End: p.End.String(), Instructions: s.SymbolCost(sym),
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
			x := ownPlace(s, span)
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

// ownPlace is a span with its place in the routine that has the code: where something is inlined,
// that of the call.
func ownPlace(s *wpp.Snapshot, span wpp.Span) wpp.Span {
	for c := range s.Stack(span.Call) {
		span.File, span.Line, span.Last = c.File, c.Line, c.Line
	}
	return span
}

// callsOf describes a call and those that it is in.
func callsOf(s *wpp.Snapshot, call int) (list []inlinedCall) {
	for c := range s.Stack(call) {
		x := inlinedCall{Routine: cmp.Or(printable(c.Name), "?"), Line: c.Line}
		if c.Line > 0 {
			x.File = s.Files[c.File]
		}
		list = append(list, x)
	}
	return list
}

// routineNames are the names of a snapshot's routines. Those of the same name are told apart by
// their images' names or, as overloaded or static functions, by their entries' addresses, and those
// that have the same, which is 0 where it is not known, by their order.
func routineNames(s *wpp.Snapshot) []string {
	names, number, image := make([]string, len(s.Routines)), make(map[string]int), make(map[string]int)
	for i := range s.Routines {
		r := &s.Routines[i]
		names[i] = routineName(r)
		if first, met := image[names[i]]; !met {
			image[names[i]] = r.Image
		} else if first != r.Image {
			image[names[i]] = inSeveral
		}
	}
	for i := range names {
		if image[names[i]] == inSeveral {
			names[i] = qualifiedName(s, i)
		}
		number[names[i]]++
	}
	for i := range names {
		if number[names[i]] > 1 {
			names[i] += "@" + hex(s.Routines[i].Entry)
		}
	}
	met := make(map[string]int)
	for i, name := range names {
		if met[name]++; met[name] > 1 {
			names[i] += "." + strconv.Itoa(met[name])
		}
	}
	return names
}

const inSeveral = -1 // images

// qualifiedName is a routine's name with that of its image.
func qualifiedName(s *wpp.Snapshot, routine int) string {
	r := &s.Routines[routine]
	return printable(s.Images[r.Image].Base()) + ":" + routineName(r)
}

// isNamed reports whether a routine has the name: that of the tables, its own, or that with its
// image's.
func (l *labels) isNamed(routine int, name string) bool {
	return isShort(name, l.names[routine]) || isShort(name, routineName(&l.snapshot.Routines[routine])) || isShort(name, qualifiedName(l.snapshot, routine))
}

// routineName is a routine's name made printable; a routine of a stripped file is named for its
// address.
func routineName(r *wpp.Routine) string {
	return printable(cmp.Or(r.Name, r.Symbol, "sub_"+hex(r.Entry)))
}

// name is the routine and the path's number in it, at most width columns wide.
func (l *label) name(width int) string {
	number := "#" + strconv.FormatUint(l.Path, 10)
	return shortenName(l.Routine, width-len(number)) + number
}

// where is the path's place, and in parentheses what is inlined there.
func (l *label) where() string {
	if names := l.inlinedNames(); names != "" {
		return l.place() + " (" + names + ")"
	}
	return l.place()
}

// whereIn is where at most width columns wide.
func (l *label) whereIn(width int) string {
	const least = len(" (f...)")
	where, place := l.where(), l.place()
	switch rest := width - utf8.RuneCountInString(place); {
	case utf8.RuneCountInString(where) <= width:
		return where
	case rest < least:
		return shortenLeft(place, width)
	default:
		return place + string([]rune(where[len(place):])[:rest-len(ellipsis)-1]) + ellipsis + ")"
	}
}

// inlinedNames are those of the routines whose code is inlined in the path, each once and behind
// that which it is inlined in.
func (l *label) inlinedNames() string {
	const widest = 30
	var names []string
	for _, calls := range l.Inlined {
		for _, c := range slices.Backward(calls) {
			if name := shortenName(c.Routine, widest); !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return strings.Join(names, ", ")
}

// place is the path's place in the source, or in the image when its lines are not known.
func (l *label) place() string {
	switch {
	case l.File != "":
		return printable(path.Base(l.File)) + ":" + lines(l.FirstLine, l.LastLine)
	case l.First != "":
		return printable(l.Image) + " " + hex(l.lowest) + "-" + hex(l.highest)
	default:
		return printable(l.Image)
	}
}

func lines(first, last int) string {
	if first == last {
		return strconv.Itoa(first)
	}
	return strconv.Itoa(first) + "-" + strconv.Itoa(last)
}

func hex(addr uint64) string { return strconv.FormatUint(addr, 16) }

// printable replaces what could move a terminal's cursor or break a line: names come from the
// traced program's file.
func printable(name string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || r == utf8.RuneError {
			return '?'
		}
		return r
	}, name)
}

// Fit makes a name printable and at most width columns wide.
func Fit(name string, width int) string { return shortenName(printable(name), width) }

// field makes a name one field of a line whose fields are separated by spaces.
func field(name string) string { return strings.ReplaceAll(printable(name), " ", "_") }

func pad(text string, width int) string {
	return text + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(text)))
}
