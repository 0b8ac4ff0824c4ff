package traced

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"wpptrace/internal/remedy"
	"wpptrace/loader/cfg"
	"wpptrace/loader/image"
	"wpptrace/loader/plan"
	routinenames "wpptrace/query/names"
)

// meant says which routines may be meant by an expression that matches none: those with similar
// names, or those into which what it matches is inlined; and what to ask for then.
func meant(c *cfg.Program, re *regexp.Regexp) (kind remedy.Kind, hint string) {
	var known []string
	for _, r := range c.Routines {
		known = append(known, r.Name)
	}
	met := map[string]bool{}
	isMeant := func(name string) bool {
		met[name] = met[name] || re.MatchString(name)
		return met[name]
	}
	if into := inlinedInto(c.Image, isMeant, owners(c).at); len(into) > 0 {
		var list, inlined []string
		for name, is := range met {
			if is {
				inlined = append(inlined, name)
			}
		}
		slices.Sort(inlined)
		for _, r := range into {
			list = append(list, r.Name)
		}
		return remedy.SelectInliner, fmt.Sprintf(", but %s, inlined into %s",
			routinenames.Printable(routinenames.List(inlined)),
			routinenames.Printable(routinenames.List(list)))
	}
	const most = 3
	plain := strings.ReplaceAll(strings.TrimSuffix(strings.TrimPrefix(re.String(), "^"), "$"), `\`,
		"")
	if similar := routinenames.Similar(plain, known, most); len(similar) > 0 {
		hint = ", but there is " + strings.Join(similar, ", ")
	}
	return remedy.ListAll, hint
}

// inlinedInto returns the routines with code that is inlined from those whose names are asked for,
// as far as debug information says so. It takes the time of reading all of that,
// about 0.3 s for 10 MB. at is the routine that an address is in, or nil.
func inlinedInto(im *image.Image, isNamed func(routine string) bool,
	at func(addr uint64) *cfg.Routine) (into []*cfg.Routine) {
	lines, err := im.Lines()
	if err != nil {
		return nil
	}
	defer lines.Release()
	met := map[*cfg.Routine]bool{}
	for _, addr := range lines.Copies(isNamed) {
		if r := at(addr); r != nil && !met[r] {
			met[r], into = true, append(into, r)
		}
	}
	slices.SortFunc(into, func(a, b *cfg.Routine) int { return cmp.Compare(a.Addr, b.Addr) })
	return into
}

// codeOwners are the ranges of routines, by address.
type codeOwners []codeOwner

type codeOwner struct {
	lo, hi  uint64
	routine *cfg.Routine
}

func owners(c *cfg.Program) (list codeOwners) {
	for _, r := range c.Routines {
		for _, span := range r.Ranges {
			list = append(list, codeOwner{span[0], span[1], r})
		}
	}
	slices.SortFunc(list, func(a, b codeOwner) int { return cmp.Compare(a.lo, b.lo) })
	return list
}

// at is the routine that an address is in, or nil.
func (list codeOwners) at(addr uint64) *cfg.Routine {
	i, found := slices.BinarySearchFunc(list, addr,
		func(o codeOwner, addr uint64) int { return cmp.Compare(o.lo, addr) })
	if !found {
		i--
	}
	if i < 0 || addr >= list[i].hi {
		return nil
	}
	return list[i].routine
}

// InlinedElsewhere returns the names of the routines that are not selected into which routines are
// inlined whose names some expressions match: what runs there is not traced. It takes the time of
// reading all debug information, about 0.3 s for 10 MB, and returns none where that is larger than
// most bytes.
func (p *Program) InlinedElsewhere(only []*regexp.Regexp, most uint64) (list []string) {
	if n := p.Image.DebugBytes(); len(only) == 0 || n == 0 || n > most {
		return nil
	}
	at := func(addr uint64) *cfg.Routine {
		if r := p.Plan.Containing(addr); r != nil {
			return r.Routine
		}
		return nil
	}
	isNamed := func(name string) bool {
		return slices.ContainsFunc(only,
			func(re *regexp.Regexp) bool { return re.MatchString(name) })
	}
	for _, r := range inlinedInto(p.Image, isNamed, at) {
		if !p.selects(r) {
			list = append(list, r.Name)
		}
	}
	return list
}

// unnamed is the name of a routine that is called by its address, if most are, as in a program that
// is stripped; or "".
func (p *Program) unnamed() (name string) {
	n := 0
	for _, r := range p.Plan.Routines {
		if r.Symbol == "" {
			n, name = n+1, r.Name
		}
	}
	if 2*n <= len(p.Plan.Routines) {
		return ""
	}
	return name
}

// Routine returns the one routine with a name: as it is printed, as the symbol table has it, or
// the entry's address. Where there is none, or several are, the error names those that may be
// meant.
func (p *Program) Routine(name string) (*plan.Routine, error) {
	const most = 10
	var found []*plan.Routine
	known := make([]string, len(p.Plan.Routines))
	for i, r := range p.Plan.Routines {
		if known[i] = r.Name; r.Name == name || r.Symbol == name {
			found = append(found, r)
		}
	}
	if addr, err := strconv.ParseUint(strings.TrimPrefix(name, "0x"), 16, 64); err == nil &&
		len(found) == 0 {
		if r := p.Plan.Containing(addr); r != nil && r.Addr == addr {
			return r, nil
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) == 0:
		near := routinenames.Similar(name, known, most)
		switch unnamed := p.unnamed(); {
		case len(near) == 0 && unnamed != "":
			return nil, remedy.Errorf(remedy.List, "no routine %s: the program has no symbols for "+
				"most of its routines (it is stripped): name one by its entry's address, as %s is",
				routinenames.Printable(name), unnamed)
		case len(near) == 0:
			return nil, remedy.Errorf(remedy.List, "no routine %s", routinenames.Printable(name))
		}
		return nil, fmt.Errorf("no routine %s: did you mean %s?", routinenames.Printable(name),
			routinenames.Printable(strings.Join(near, " or ")))
	}
	var entries []string
	for _, r := range found[:min(len(found), most)] {
		entries = append(entries, fmt.Sprintf("0x%x", r.Addr))
	}
	return nil, fmt.Errorf("%d routines are called %s: name one by its entry: %s", len(found),
		routinenames.Printable(name), strings.Join(entries, ", "))
}
