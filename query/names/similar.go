package names

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Similar returns those of some routines' names that somebody may have meant who wrote one that
// none has: names that are the same without parameters, template arguments, tags ([abi:cxx11]) and
// the suffixes of a compiler's clones; else those of which it is the last part, or which have the
// same last part; else those with the fewest other letters, if these are few. There are up to most,
// without repetitions, in the order of known. It takes time linear in all names, times the length
// of the one.
func Similar(name string, known []string, most int) []string {
	core := coreOf(name)
	if core == "" {
		return nil
	}
	found := closest(core, known)
	slices.SortFunc(found, func(a, b candidate) int { return a.distance - b.distance })
	var list []string
	for _, c := range found {
		if len(list) < most && c.distance == found[0].distance && !slices.Contains(list, c.name) {
			list = append(list, c.name)
		}
	}
	return list
}

// A candidate is a name that may have been meant. Its distance is 0 where the core of both names is
// the same, 1 where their last parts are, and else one more than the letters that differ.
type candidate struct {
	name     string
	distance int
}

func closest(core string, known []string) (list []candidate) {
	last := lastPart(core)
	few := max(1, len(last)/4)
	for _, k := range known {
		other := coreOf(k)
		part := lastPart(other)
		switch {
		case other == core:
			list = append(list, candidate{k, 0})
		case part == last:
			list = append(list, candidate{k, 1})
		default:
			if n := editDistance(last, part, few); n <= few && n < len(last) && n < len(part) {
				list = append(list, candidate{k, n + 1})
			}
		}
	}
	return list
}

// addresses distinguish routines of one name; clones and tags are a compiler's.
var (
	addresses = expression(`@[0-9a-f]+(\.\d+)?$`)
	clones    = expression(`\.(cold|part|constprop|isra|lto_priv|llvm)\b.*$`)
	tags      = expression(`\[abi:\w+\]`)
)

// expression is compiled when it is needed first.
func expression(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}

// coreOf is a name without what writers of it leave out.
func coreOf(name string) string {
	name = addresses().ReplaceAllString(name, "")
	name = clones().ReplaceAllString(name, "")
	name = tags().ReplaceAllString(name, "")
	return strings.TrimSpace(withoutArguments(declared(name)))
}

// declared is the name in a declaration of a function: without its parameters and the type of what
// it returns, which stands before the last space that is in no brackets.
func declared(name string) string {
	name = withoutParameters(name)
	depth := 0
	for i, c := range slices.Backward([]byte(name)) {
		switch c {
		case ')', '>', '}', ']':
			depth++
		case '(', '<', '{', '[':
			depth--
		case ' ':
			if depth == 0 && !strings.Contains(name, "operator") {
				return name[i+1:]
			}
		}
	}
	return name
}

// withoutParameters is a name without the list of its parameters, if it has one at its end: that of
// operator() is behind its name.
func withoutParameters(name string) string {
	name = strings.TrimSuffix(strings.TrimSpace(name), " const")
	if !strings.HasSuffix(name, ")") {
		return name
	}
	depth := 0
	for i, c := range slices.Backward([]byte(name)) {
		switch c {
		case ')':
			depth++
		case '(':
			depth--
		}
		if depth == 0 {
			if strings.HasSuffix(name[:i], "operator") {
				return name
			}
			return name[:i]
		}
	}
	return name
}

// lastPart is what is behind the last :: of a name; an operator's signs are one part with it.
func lastPart(name string) string {
	if at := strings.LastIndex(name, "::"); at >= 0 {
		return name[at+2:]
	}
	return name
}

// editDistance is how many letters have to be put in, taken out, exchanged with another or with the
// next to make one text of the other, or most + 1 where that is more.
func editDistance(a, b string, most int) int {
	if d := len(a) - len(b); d > most || -d > most {
		return most + 1
	}
	var rows [3][]int // of a's beginnings: the last but one, the last, and this
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
	}
	for j := range rows[1] {
		rows[1][j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := rows[2]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			other := 1
			if a[i-1] == b[j-1] {
				other = 0
			}
			row[j] = min(rows[1][j]+1, row[j-1]+1, rows[1][j-1]+other)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], rows[0][j-2]+1)
			}
		}
		rows[0], rows[1], rows[2] = rows[1], row, rows[0]
	}
	return min(rows[1][len(b)], most+1)
}
