// Package names is what the routines and paths of a snapshot are called: it gives each routine a
// name of its own, finds what a name stands for, and shortens names such that they can still be
// found by what is left.
//
// Names come from the traced program's file and may be hostile: what this package returns can be
// printed. It knows nothing of grammars, and builds on any OS.
package names

import (
	"cmp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"wpptrace/compress/wpp"
)

// Names are the names of a snapshot's routines. They do not change, and any number of goroutines
// may use them at once.
type Names struct {
	snapshot *wpp.Snapshot
	routines []string
}

// Of names the routines of a snapshot, in linear time. Those of the same name are distinguished by
// their images' names or, as overloaded or static functions, by their entries' addresses, and those
// that have the same, which is 0 where it is not known, by their order.
func Of(s *wpp.Snapshot) *Names { return &Names{s, routineNames(s)} }

// Routine is the name that no other routine of the snapshot has.
func (n *Names) Routine(routine int) string { return n.routines[routine] }

func number(p *wpp.Symbol) string { return "#" + strconv.FormatUint(p.Path, 10) }

// IsRoutine reports whether a routine has the name: that of the tables, its own, or that with its
// image's, each shortened or not.
func (n *Names) IsRoutine(routine int, name string) bool {
	return Matches(name, n.routines[routine]) ||
		Matches(name, Plain(&n.snapshot.Routines[routine])) ||
		Matches(name, qualifiedName(n.snapshot, routine))
}

// IsPath reports whether a path has the name, ROUTINE#NUMBER.
func (n *Names) IsPath(sym uint32, name string) bool {
	p := &n.snapshot.Symbols[sym]
	routine, ok := strings.CutSuffix(name, number(p))
	return ok && n.IsRoutine(p.Routine, routine)
}

func routineNames(s *wpp.Snapshot) []string {
	names, count, image := make([]string,
		len(s.Routines)), make(map[string]int), make(map[string]int)
	for i := range s.Routines {
		r := &s.Routines[i]
		names[i] = Plain(r)
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
		count[names[i]]++
	}
	for i := range names {
		if count[names[i]] > 1 {
			names[i] += "@" + strconv.FormatUint(s.Routines[i].Entry, 16)
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
	return Printable(s.Images[r.Image].Base()) + ":" + Plain(r)
}

// Plain is a routine's own name, which others may have as well, made printable; a routine of a
// stripped file is named for its address.
func Plain(r *wpp.Routine) string {
	return Printable(cmp.Or(r.Name, r.Symbol, "sub_"+strconv.FormatUint(r.Entry, 16)))
}

// Printable replaces what could move a terminal's cursor or break a line.
func Printable(name string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || r == utf8.RuneError {
			return '?'
		}
		return r
	}, name)
}
