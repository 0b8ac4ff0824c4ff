package rules

import (
	"maps"
	"slices"
	"strings"

	"wpptrace/compress/wpp"
	"wpptrace/query/names"
)

// Named returns the numbers of the routines, in rising order, whose names are in some texts: names,
// patterns or rules, be they right or wrong.
func Named(s *wpp.Snapshot, texts ...string) []int {
	known, routines := names.Of(s), map[int]bool{}
	for _, name := range namesIn(texts) {
		found, _ := known.Split(name)
		maps.Copy(routines, found)
	}
	return slices.Sorted(maps.Keys(routines))
}

// namesIn returns what may be a name in some texts: each as a whole, and its words.
func namesIn(texts []string) (list []string) {
	for _, text := range texts {
		list = append(list, text)
		words, _ := tokens(text) // what is wrong with a pattern is reported where it is asked for
		for _, w := range words {
			if w.call != nil {
				list = append(list, w.call.name)
			} else if w.name && w.text != text {
				list = append(list, w.text)
			}
		}
	}
	return list
}

// Copies are those of a routine's code that run in other routines' paths.
type Copies struct {
	Name string   // of the routine that is inlined, as it was asked for
	Into []string // the routines that ran code of it
}

// Inlined returns, of the names in some texts that stand for a routine's paths, those whose code
// was inlined into other routines and ran there, as far as debug information says so: what runs
// there is no path of the name, and does not count. It takes time in proportion to the alphabet's
// paths, for each name.
func Inlined(s *wpp.Snapshot, texts ...string) (list []Copies) {
	known, met := names.Of(s), map[string]bool{}
	for _, name := range namesIn(texts) {
		if c := inlinedAs(known, name); len(c.Into) > 0 && !met[c.Name] {
			met[c.Name] = true
			list = append(list, c)
		}
	}
	return list
}

// inlinedAs returns the copies of the routine that a name stands for the paths of, or none.
func inlinedAs(known *names.Names, name string) Copies {
	routines, which := known.Split(name)
	plain, _, quoted := names.Unquote(name)
	if !quoted {
		plain = strings.TrimSuffix(name, which)
	}
	if len(routines) == 0 || which != "" && which != "()" {
		return Copies{}
	}
	return Copies{plain, known.InlinedInto(plain)}
}
