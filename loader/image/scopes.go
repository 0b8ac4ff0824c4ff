package image

import (
	"cmp"
	"debug/dwarf"
	"fmt"
	"slices"
)

// A scope is an entry that qualifies the names of those within it: of a namespace, a class or a
// routine.
type scope struct {
	entry dwarf.Offset
	last  dwarf.Offset // the last entry within it
	in    int          // the scope that it is in: index in the unit's scopes, or nowhere
	tag   dwarf.Tag
}

// scopesOf returns the scopes of the unit that an entry is in, by offset. They are read when one of
// the unit's entries is asked for; there are none where a unit's language is known and is not C++.
func (d *debugData) scopesOf(at dwarf.Offset) ([]scope, error) {
	i, found := slices.BinarySearchFunc(d.units, at, func(u debugUnit, at dwarf.Offset) int {
		return cmp.Compare(u.first, at)
	})
	if !found {
		i--
	}
	if i < 0 {
		return nil, nil
	}
	first := d.units[i].first
	list, ok := d.scopes[first]
	if ok {
		return list, nil
	}
	list, err := d.readScopes(first)
	if err != nil {
		return nil, err
	}
	if d.scopes == nil {
		d.scopes = map[dwarf.Offset][]scope{}
	}
	d.scopes[first] = list
	return list, nil
}

func (d *debugData) readScopes(first dwarf.Offset) (list []scope, err error) {
	r, unit, err := d.entryAt(first)
	if err != nil || unit == nil || !unit.Children || !isCPlusPlus(unit) {
		return nil, err
	}
	around := []int{nowhere} // of each entry around: the innermost scope
	isScope := []bool{false}
	latest := first
	for len(around) > 0 {
		e, err := d.entry(r)
		if err != nil {
			return nil, err
		}
		if e == nil {
			break
		}
		last := len(around) - 1
		if e.Tag == 0 {
			if isScope[last] {
				list[around[last]].last = latest
			}
			around, isScope = around[:last], isScope[:last]
			continue
		}
		if latest = e.Offset; !e.Children {
			continue
		}
		in, is := around[last], qualifies(e.Tag)
		if is {
			if d.left.scopes--; d.left.scopes < 0 {
				return nil, fmt.Errorf("more than %d scopes of names", maxScopes)
			}
			// where its end is missing, there are none within it
			list = append(list, scope{e.Offset, e.Offset, in, e.Tag})
			in = len(list) - 1
		}
		around, isScope = append(around, in), append(isScope, is)
	}
	return list, nil
}

func isCPlusPlus(unit *dwarf.Entry) bool {
	language, known := unit.Val(dwarf.AttrLanguage).(int64)
	return !known || slices.Contains([]int64{0x04, 0x1a, 0x21, 0x2a, 0x2b, 0x3a}, language)
}

func qualifies(tag dwarf.Tag) bool { return tag == dwarf.TagSubprogram || qualifiesMembers(tag) }

func qualifiesMembers(tag dwarf.Tag) bool {
	switch tag {
	case dwarf.TagNamespace, dwarf.TagClassType, dwarf.TagStructType, dwarf.TagUnionType,
		dwarf.TagInterfaceType:
		return true
	}
	return false
}

// scopeOf returns the innermost scope that an entry is in; nil: it is in none.
func (d *debugData) scopeOf(at dwarf.Offset) (*scope, error) {
	list, err := d.scopesOf(at)
	if err != nil {
		return nil, err
	}
	i, _ := slices.BinarySearchFunc(list, at, func(s scope, at dwarf.Offset) int {
		return cmp.Compare(s.entry, at)
	})
	for i--; i != nowhere; i = list[i].in {
		if at <= list[i].last {
			return &list[i], nil
		}
	}
	return nil, nil
}

// qualified puts before a name that of the scope that its entry is in, as a demangled name has it.
func (d *debugData) qualified(name string, at dwarf.Offset, external bool,
	depth int) (string, error) {
	s, err := d.scopeOf(at)
	if err != nil {
		return "", err
	}
	// of what is external, C++ has a linkage name: without one it is extern "C" in a namespace
	if s == nil || external && s.tag == dwarf.TagNamespace {
		return name, nil
	}
	if depth >= maxScopeDepth {
		return "", fmt.Errorf("more than %d scopes in each other", maxScopeDepth)
	}
	outer, err := d.nameOf(naming{entry: s.entry}, depth+1)
	if err != nil {
		return "", err
	}
	if outer == "" { // a class without a name, as that of a lambda
		return name, nil
	}
	name = outer + "::" + name
	if len(name) > maxName {
		return "", fmt.Errorf("a qualified name has more than %d bytes", maxName)
	}
	return name, d.charge(len(name))
}
