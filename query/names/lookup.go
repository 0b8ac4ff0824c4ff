package names

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"wpptrace/compress/ops"
	"wpptrace/compress/wpp"
	"wpptrace/internal/text"
)

// IsName reports whether a text names paths of the snapshot, as Select takes them.
func (n *Names) IsName(text string) bool {
	_, err := n.Select(text)
	return err == nil
}

// Select returns what decides whether a path is one of a name's. ROUTINE is all paths of a routine,
// ROUTINE#N its path N, ROUTINE() those that enter it. In quotes, what looks like the end of a name
// may belong to the routine's. Of that "..." may stand for a part, and @ADDRESS may be missing. A
// path that did not run is no error, one that the routine does not have is one, and so is a routine
// that does not exist.
func (n *Names) Select(name string) (isNamed func(p *wpp.Symbol) bool, err error) {
	routines, which := n.Split(name)
	path := uint64(0)
	if strings.HasPrefix(which, "#") {
		path, err = strconv.ParseUint(which[1:], 10, 64)
	}
	switch {
	case len(routines) == 0:
		return nil, n.noRoutine(strings.TrimSuffix(name, which))
	case err != nil || which != "" && which != "()" && which[0] != '#':
		return nil, fmt.Errorf("%s: %q is no number of a path", Printable(name),
			strings.TrimPrefix(which, "#"))
	}
	isNamed = func(p *wpp.Symbol) bool {
		return !p.IsMark && routines[p.Routine] &&
			(which == "" || which == "()" && isEntry(p) || which[0] == '#' && p.Path == path)
	}
	if paths := n.mostPaths(routines); strings.HasPrefix(which, "#") && path >= paths &&
		!slices.ContainsFunc(n.snapshot.Symbols, func(p wpp.Symbol) bool { return isNamed(&p) }) {
		return nil, fmt.Errorf("%s: the routine has %s", Printable(name), text.Count(paths, "path"))
	}
	return isNamed, nil
}

// Routines returns the routines of a name, ROUTINE or ROUTINE() as Select takes it, in rising
// order. It fails where there is none, and where the name is that of a path.
func (n *Names) Routines(name string) ([]int, error) {
	if _, err := n.Select(name); err != nil {
		return nil, err
	}
	routines, which := n.Split(name)
	if which != "" && which != "()" {
		return nil, fmt.Errorf("it is a path: name its routine, without %s", Printable(which))
	}
	return slices.Sorted(maps.Keys(routines)), nil
}

// Meant returns the routines of a name, as Routines does, or of what somebody means by it who names
// a routine as its source or a debugger does: with its parameters, or without the suffix of the one
// clone that a compiler has made of it. Of several clones the error lists them.
func (n *Names) Meant(name string) ([]int, error) {
	list, err := n.Routines(name)
	if err == nil {
		return list, nil
	}
	if plain := declared(name); plain != name && len(n.named(plain)) == 1 {
		return n.Routines(plain)
	}
	switch made := n.clonesOf(declared(name)); len(made) {
	case 0:
		return nil, err
	case 1:
		return n.Routines(made[0])
	default:
		return nil, fmt.Errorf("%s may be one of %s: name that", Printable(name), List(made))
	}
}

// mostPaths is how many whole paths the one of the routines has that has most of them.
func (n *Names) mostPaths(routines map[int]bool) (most uint64) {
	for r := range routines {
		most = max(most, n.snapshot.Routines[r].Paths)
	}
	return most
}

// noRoutine says that no routine has a name, and which may have been meant.
func (n *Names) noRoutine(name string) error {
	if inner, _, ok := Unquote(name); ok && inner != "" {
		name = inner
	}
	if err := n.meant(name); err != nil {
		return err
	}
	return fmt.Errorf("no routine %s: name one as dump prints it, in quotes if there are spaces "+
		"or signs in it", Printable(name))
}

// meant says what somebody may have meant by the name of no routine, if that is known.
func (n *Names) meant(name string) error {
	for _, name := range []string{name, declared(name)} {
		if len(n.named(name)) > 0 {
			break // it has code, by that name
		}
		if into := n.InlinedInto(name); len(into) > 0 {
			clones := ""
			if list := n.clonesOf(name); len(list) > 0 {
				clones = ", but there is " + List(list)
			}
			return fmt.Errorf("%s has no code of its own in the snapshot: it is inlined into %s, "+
				"where calls of it are not counted%s", Printable(name), List(into), clones)
		}
	}
	known := slices.Clone(n.routines)
	for i := range n.snapshot.Calls {
		known = append(known, Printable(n.snapshot.Calls[i].Name))
	}
	if similar := Similar(name, known, mostSimilar); len(similar) > 0 {
		return fmt.Errorf("no routine %s, but %s", Printable(name), strings.Join(similar, ", "))
	}
	return nil
}

// clonesOf returns the routines that a compiler made of one, or split from it.
func (n *Names) clonesOf(name string) (list []string) {
	for _, routine := range n.routines {
		if plain := clones().ReplaceAllString(routine, ""); plain != routine && plain == name {
			list = append(list, routine)
		}
	}
	return list
}

// mostSimilar is how many similar names an error lists.
const mostSimilar = 3

// List is a list of names as a sentence has it, the end of a long one left out.
func List(list []string) string {
	const most = 5
	if len(list) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(list[:most], ", "), len(list)-most)
	}
	return strings.Join(list, ", ")
}

// Split parts a name into its routines and what says which of their paths: "", "()" or "#N". Where
// there is none, which is what was taken for that.
func (n *Names) Split(name string) (routines map[int]bool, which string) {
	if inner, rest, ok := Unquote(name); ok {
		if routines = n.named(inner); len(routines) > 0 || rest != "" {
			return routines, rest
		}
		name = inner
	}
	if routine, entered := strings.CutSuffix(name, "()"); entered {
		if routines = n.named(routine); len(routines) > 0 {
			return routines, "()"
		}
	}
	if routines = n.named(name); len(routines) > 0 {
		return routines, ""
	}
	if at := strings.LastIndexByte(name, '#'); at >= 0 {
		return n.named(name[:at]), name[at:]
	}
	return nil, ""
}

// Unquote parts a name in quotes into what is in them and what is behind.
func Unquote(name string) (inner, rest string, ok bool) {
	if name == "" || name[0] != '\'' && name[0] != '"' {
		return "", "", false
	}
	return strings.Cut(name[1:], name[:1])
}

// named are the routines of a name.
func (n *Names) named(name string) map[int]bool {
	found := make(map[int]bool)
	for i := range n.routines {
		if name != "" && n.IsRoutine(i, name) {
			found[i] = true
		}
	}
	return found
}

// Missing says why no path that ran has the name, of which Split has returned routines and number,
// and how to name one.
func (n *Names) Missing(name string, routines map[int]bool, number string) error {
	if err := n.meant(strings.TrimSuffix(name, number)); err != nil && len(routines) == 0 {
		return err
	}
	return fmt.Errorf("%s: name one as the table of hot subpaths does, ROUTINE#NUMBER",
		n.why(routines, number))
}

func (n *Names) why(routines map[int]bool, number string) string {
	if !strings.HasPrefix(number, "#") {
		return "it has no number"
	}
	path, err := strconv.ParseUint(number[1:], 10, 64)
	switch {
	case err != nil:
		return "its number is none"
	case len(routines) == 0:
		return "there is no such routine"
	}
	if paths := n.mostPaths(routines); path >= paths {
		return "the routine has " + text.Count(paths, "path")
	}
	return "it did not run"
}

// Matches reports whether short is the text, or stands for it, as what Shorten makes of it does:
// each "..." for any part of it, which may be empty.
func Matches(short, text string) bool {
	if short == text {
		return true
	}
	parts := strings.Split(short, Ellipsis)
	last := len(parts) - 1
	text, ok := strings.CutPrefix(text, parts[0])
	for i := 1; ok && i < last; i++ {
		_, text, ok = strings.Cut(text, parts[i])
	}
	return ok && last > 0 && strings.HasSuffix(text, parts[last])
}

// isEntry reports whether a path begins where its routine does, and was seen from there on.
func isEntry(p *wpp.Symbol) bool { return !p.IsMark && p.Start == ops.StartEntry }
