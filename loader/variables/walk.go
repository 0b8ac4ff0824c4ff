package variables

import (
	"cmp"
	"debug/dwarf"
	"fmt"
	"math"

	"wpptrace/loader/image"
)

// A Table has variables, with the types that they lead to.
type Table struct {
	Variables []Variable
	Types     []Type
}

// A Variable is a local one of some code, an argument, or a global one.
type Variable struct {
	Name      string // of a global one with the namespaces or classes that it is in
	Line      int    // of its declaration; 0: it is not known
	Inlined   string // the routine that it is of, where that is inlined; "": it is not
	IsGlobal  bool
	Type      int // index in Table.Types
	Locations []Location
}

// A Location says where a variable is while the code of [Lo, Hi) runs.
type Location struct {
	Lo, Hi uint64 // link-time
	// DWARF 5, section 2.6, with nothing in it but what package location has of general and vector
	// registers, link-time addresses, numbers and sizes; nil: it is not known.
	Expression []byte
}

// What a file may claim: the largest programs there are stay below these.
const (
	maxLocations = 1 << 22
	maxTypes     = 1 << 22 // with their members and names
	maxRows      = 1 << 26 // of line tables and of unwind tables
	maxName      = 1 << 16 // bytes
	maxLine      = 1 << 30
)

// Of returns the global variables of an image, and those local ones that are of code that is
// wanted: of which a routine is asked for by the address of its first code. It reads all entries of
// the debug information, some 0.3 s for 10 MB of it. The error is image.ErrNoLines where there is
// none.
func Of(im *image.Image, wanted func(code uint64) bool) (*Table, error) {
	w := walk{image: im, wanted: wanted, left: maxLocations, frames: rowCache{left: maxRows}}
	if err := im.Debug(w.all); err != nil {
		return nil, fmt.Errorf("read variables of %s: %w", im.Name, err)
	}
	return &Table{w.found, w.types.list}, nil
}

func (w *walk) all(debug *image.Debug) (err error) {
	w.debug = debug
	w.types = typeTable{debug: debug, known: map[dwarf.Offset]int{}, left: maxTypes}
	for i, name := range []string{"loc", "loclists", "addr"} {
		if w.lists[i], err = debug.Section(name); err != nil {
			return err
		}
	}
	for _, u := range debug.Units() {
		if err := w.unit(u); err != nil {
			return fmt.Errorf("unit at %#x: %w", u.First, err)
		}
	}
	return nil
}

// A walk goes over the entries of all units.
type walk struct {
	image  *image.Image
	wanted func(uint64) bool
	debug  *image.Debug
	types  typeTable
	lists  [3][]byte // .debug_loc, and since DWARF 5 .debug_loclists and .debug_addr
	about  unit
	scopes []scope
	found  []Variable
	left   int // locations that there may be yet
	frames rowCache
	bodies bodies
}

// A unit is what locations of a unit are relative to.
type unit struct {
	start     dwarf.Offset // of the unit
	isNew     bool         // of DWARF 5 or later
	base      uint64       // of lists
	lists     int64        // where the offsets of lists begin; -1: they have none
	addresses int64        // where the unit's addresses begin
}

// A scope is what a variable may be within.
type scope struct {
	ranges  [][2]uint64 // nil: it is not within code
	routine *routine
	inlined string
	name    string // of the namespaces around, with "::" behind it
	// isAbstract: it is what the code of an inlined routine refers to
	isAbstract bool
}

// A routine is one that has code of its own.
type routine struct {
	frame  []byte // the expression of what locations are relative to (DWARF 5, section 3.3.5)
	ranges [][2]uint64
	body   uint64 // see bodies.of
	// stands says whether the register that locations are relative to has what they are relative
	// to, by the rule for the frame's address; nil: it has not been asked for
	stands func(image.CFA) bool
}

func (w *walk) unit(u image.Unit) error {
	r, first, err := w.debug.EntryAt(u.First)
	if err != nil || first == nil || first.Tag != dwarf.TagCompileUnit || !first.Children {
		return err
	}
	w.about = unit{start: u.Start, isNew: u.Version >= 5, lists: -1, addresses: -1}
	w.bodies.unit, w.bodies.isRead = first, false
	w.about.base, _ = first.Val(dwarf.AttrLowpc).(uint64)
	for attribute, to := range map[dwarf.Attr]*int64{dwarf.AttrLoclistsBase: &w.about.lists,
		dwarf.AttrAddrBase: &w.about.addresses, attrGNUAddrBase: &w.about.addresses} {
		if at, ok := first.Val(attribute).(int64); ok {
			*to = at
		}
	}
	w.scopes = append(w.scopes[:0], scope{})
	for len(w.scopes) > 0 {
		e, err := w.debug.Entry(r)
		if err != nil {
			return err
		}
		if e == nil || e.Tag == dwarf.TagCompileUnit {
			return nil // of this one the end is missing
		}
		if e.Tag == 0 {
			w.scopes = w.scopes[:len(w.scopes)-1]
			continue
		}
		inner, enters, err := w.entry(e)
		switch {
		case err != nil:
			return err
		case e.Children && enters:
			w.scopes = append(w.scopes, inner)
		case e.Children:
			r.SkipChildren()
		}
	}
	return nil
}

// entry takes an entry, and says whether those within it are to be looked at, and in which scope.
func (w *walk) entry(e *dwarf.Entry) (inner scope, enters bool, err error) {
	inner = w.scopes[len(w.scopes)-1]
	switch e.Tag {
	case dwarf.TagVariable, dwarf.TagFormalParameter:
		return inner, false, w.variable(e, &inner)
	case dwarf.TagNamespace:
		if name, _ := e.Val(dwarf.AttrName).(string); len(inner.name)+len(name) < maxName {
			inner.name += cmp.Or(name, "(anonymous namespace)") + "::"
		}
		return inner, true, nil
	case dwarf.TagSubprogram:
		if !image.HasCode(e) {
			if e.AttrField(dwarf.AttrInline) == nil {
				return inner, false, nil
			}
			// what is inlined everywhere has its static variables in no code
			inner = scope{isAbstract: true}
			inner.inlined, err = w.debug.RoutineName(e)
			return inner, err == nil, err
		}
		inner.ranges, err = w.debug.Ranges(e)
		if err != nil || len(inner.ranges) == 0 || !w.wanted(inner.ranges[0][0]) {
			return inner, false, err
		}
		frame, _ := e.Val(dwarf.AttrFrameBase).([]byte)
		inner.routine = &routine{frame: frame, ranges: inner.ranges}
		inner.routine.body, err = w.bodies.of(w.debug, inner.ranges[0])
		inner.inlined = ""
		return inner, err == nil, err
	case dwarf.TagInlinedSubroutine, dwarf.TagLexDwarfBlock:
		if image.HasCode(e) {
			inner.ranges, err = w.debug.Ranges(e)
		}
		if err == nil && e.Tag == dwarf.TagInlinedSubroutine {
			inner.inlined, err = w.debug.RoutineName(e)
		}
		return inner, err == nil && (inner.ranges != nil || inner.isAbstract), err
	}
	return inner, false, nil
}

const attrGNUAddrBase = dwarf.Attr(0x2133) // before DWARF 5

// variable adds a variable that has a location, or is a constant.
func (w *walk) variable(e *dwarf.Entry, scope *scope) error {
	at, constant := e.AttrField(dwarf.AttrLocation), e.AttrField(dwarf.AttrConstValue)
	if at == nil && (constant == nil || scope.isAbstract) {
		return nil
	}
	v := Variable{IsGlobal: scope.ranges == nil, Inlined: scope.inlined}
	var ok bool
	var err error
	if ok, err = w.describe(&v, e, scope); err != nil || !ok {
		return err
	}
	ranges := scope.ranges
	if v.IsGlobal {
		ranges = [][2]uint64{{0, math.MaxUint64}}
	}
	for _, r := range ranges {
		v.Locations = append(v.Locations, Location{r[0], r[1], nil})
	}
	switch {
	case at == nil:
		for i := range v.Locations {
			v.Locations[i].Expression = constantExpression(constant.Val)
		}
	case at.Class == dwarf.ClassLocListPtr || at.Class == dwarf.ClassLocList:
		if list, ok := w.list(at); ok {
			v.Locations = w.rewriteAll(list, scope.routine, false)
		}
	default:
		x, _ := at.Val.([]byte)
		for i := range v.Locations {
			v.Locations[i].Expression = x
		}
		v.Locations = w.rewriteAll(v.Locations, scope.routine, !v.IsGlobal)
	}
	if w.left -= 1 + len(v.Locations); w.left < 0 {
		return fmt.Errorf("more than %d locations of variables", maxLocations)
	}
	w.found = append(w.found, v)
	return nil
}

// mostReferred is how many entries one refers to for its name and its type, each to the next.
const mostReferred = 16

// describe fills in what an entry, or one that it refers to, says of a variable; false: it has no
// name, or no type that is known.
func (w *walk) describe(v *Variable, e *dwarf.Entry,
	scope *scope) (ok bool, err error) {
	var typed *dwarf.Entry
	name, linkage := "", ""
	for range mostReferred {
		if name == "" {
			name, _ = e.Val(dwarf.AttrName).(string)
		}
		if line, ok := e.Val(dwarf.AttrDeclLine).(int64); ok && v.Line == 0 {
			v.Line = int(min(max(line, 0), maxLine))
		}
		if linkage == "" {
			linkage, _ = e.Val(dwarf.AttrLinkageName).(string)
		}
		if typed == nil && e.AttrField(dwarf.AttrType) != nil {
			typed = e
		}
		next, refers := image.Referred(e)
		if !refers {
			break
		}
		if _, e, err = w.debug.EntryAt(next); err != nil || e == nil {
			return false, err
		}
	}
	if name == "" || typed == nil {
		return false, nil
	}
	if scope.ranges == nil && !scope.isAbstract {
		name = scope.name + name
		if linkage != "" {
			name = image.Demangle(linkage)
		}
	}
	v.Name = name
	v.Type, err = w.types.index(typed)
	return err == nil && v.Type != NoType, err
}
