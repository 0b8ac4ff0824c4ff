package image

import (
	"cmp"
	"debug/dwarf"
	"errors"
	"fmt"
	"io/fs"
	"math"
)

// Variables are those that debug information describes, with the types that they lead to.
type Variables struct {
	List  []Variable
	Types []Type
}

// A Variable is a local one of some code, an argument, or a global one.
type Variable struct {
	Name      string // of a global one with the namespaces or classes that it is in
	Line      int    // of its declaration; 0: it is not known
	Inlined   string // the routine that it is of, where that is inlined; "": it is not
	IsGlobal  bool
	Type      int // index in Variables.Types
	Locations []Location
}

// A Location says where a variable is while the code of [Lo, Hi) runs.
type Location struct {
	Lo, Hi uint64 // link-time
	// DWARF 5, section 2.6, with nothing in it but what package location has of general and vector
	// registers, link-time addresses, numbers and sizes; nil: it is not known.
	Expression []byte
}

// Variables returns the global variables, and those local ones that are of code that is wanted: of
// which a routine is asked for by the address of its first code. It reads all entries of the debug
// information. The error is ErrNoLines where there is no debug information.
func (im *Image) Variables(wanted func(code uint64) bool) (v *Variables, err error) {
	err = im.withDebug(func(f elfFile) (err error) {
		v, err = im.variablesOf(f, wanted)
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = ErrNoLines
	}
	if err != nil {
		return nil, fmt.Errorf("read variables of %s: %w", im.Name, err)
	}
	return v, nil
}

func (im *Image) variablesOf(f elfFile, wanted func(uint64) bool) (_ *Variables, err error) {
	defer func() { // debug/dwarf panics on some hostile files
		if p := recover(); p != nil {
			err = fmt.Errorf("malformed debug information: %v", p)
		}
	}()
	if f.debugSection("info") == nil {
		return nil, ErrNoLines
	}
	w := variableWalk{image: im, wanted: wanted, left: maxLocations,
		frames: rowCache{left: maxRanges}}
	if w.debug, err = f.openDWARF(); err != nil {
		return nil, err
	}
	_ = f.openSupplement(w.debug) // names that it has are not known then
	w.types = typeTable{debug: w.debug, known: map[dwarf.Offset]int{}, left: maxTypes}
	for i, name := range []string{"loc", "loclists", "addr"} {
		if s := f.debugSection(name); s != nil {
			if w.lists[i], err = f.unpack(s, maxDebug); err != nil {
				return nil, fmt.Errorf("section %s: %w", s.Name, err)
			}
		}
	}
	for _, u := range w.debug.units {
		if err := w.unit(u); err != nil {
			return nil, fmt.Errorf("unit at %#x: %w", u.first, err)
		}
	}
	return &Variables{w.found, w.types.list}, nil
}

// A variableWalk goes over the entries of all units.
type variableWalk struct {
	image  *Image
	wanted func(uint64) bool
	debug  *debugData
	types  typeTable
	lists  [3][]byte // .debug_loc, and since DWARF 5 .debug_loclists and .debug_addr
	about  locationUnit
	scopes []variableScope
	found  []Variable
	left   int // locations that there may be yet
	frames rowCache
	bodies bodies
}

// A locationUnit is what locations of a unit are relative to.
type locationUnit struct {
	start     dwarf.Offset // of the unit
	isNew     bool         // of DWARF 5 or later
	base      uint64       // of lists
	lists     int64        // where the offsets of lists begin; -1: they have none
	addresses int64        // where the unit's addresses begin
}

// A variableScope is what a variable may be within.
type variableScope struct {
	ranges  [][2]uint64 // nil: it is not within code
	routine *variableRoutine
	inlined string
	name    string // of the namespaces around, with "::" behind it
	// isAbstract: it is what the code of an inlined routine refers to
	isAbstract bool
}

// A variableRoutine is one that has code of its own.
type variableRoutine struct {
	frame  []byte // the expression of what locations are relative to (DWARF 5, section 3.3.5)
	ranges [][2]uint64
	body   uint64 // see bodies.of
	// stands says whether the register that locations are relative to has what they are relative
	// to, by the rule for the frame's address; nil: it has not been asked for
	stands func(CFA) bool
}

func (w *variableWalk) unit(u debugUnit) error {
	r, unit, err := w.debug.entryAt(u.first)
	if err != nil || unit == nil || unit.Tag != dwarf.TagCompileUnit || !unit.Children {
		return err
	}
	w.about = locationUnit{start: u.start, isNew: u.version >= 5, lists: -1, addresses: -1}
	w.bodies.unit, w.bodies.isRead = unit, false
	w.about.base, _ = unit.Val(dwarf.AttrLowpc).(uint64)
	for attribute, to := range map[dwarf.Attr]*int64{dwarf.AttrLoclistsBase: &w.about.lists,
		dwarf.AttrAddrBase: &w.about.addresses, attrGNUAddrBase: &w.about.addresses} {
		if at, ok := unit.Val(attribute).(int64); ok {
			*to = at
		}
	}
	w.scopes = append(w.scopes[:0], variableScope{})
	for len(w.scopes) > 0 {
		e, err := w.debug.entry(r)
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
func (w *variableWalk) entry(e *dwarf.Entry) (inner variableScope, enters bool, err error) {
	scope := w.scopes[len(w.scopes)-1]
	switch e.Tag {
	case dwarf.TagVariable, dwarf.TagFormalParameter:
		return scope, false, w.variable(e, &scope)
	case dwarf.TagNamespace:
		if name, _ := e.Val(dwarf.AttrName).(string); len(scope.name)+len(name) < maxName {
			scope.name += cmp.Or(name, "(anonymous namespace)") + "::"
		}
		return scope, true, nil
	case dwarf.TagSubprogram:
		if !hasCode(e) {
			if e.AttrField(dwarf.AttrInline) == nil {
				return scope, false, nil
			}
			// what is inlined everywhere has its static variables in no code
			scope = variableScope{isAbstract: true}
			scope.inlined, err = w.debug.routineName(naming{entry: e.Offset})
			return scope, err == nil, err
		}
		scope.ranges, err = w.debug.rangesOf(e)
		if err != nil || len(scope.ranges) == 0 || !w.wanted(scope.ranges[0][0]) {
			return scope, false, err
		}
		frame, _ := e.Val(dwarf.AttrFrameBase).([]byte)
		scope.routine = &variableRoutine{frame: frame, ranges: scope.ranges}
		scope.routine.body, err = w.bodies.of(w.debug, scope.ranges[0])
		scope.inlined = ""
		return scope, err == nil, err
	case dwarf.TagInlinedSubroutine, dwarf.TagLexDwarfBlock:
		if hasCode(e) {
			scope.ranges, err = w.debug.rangesOf(e)
		}
		if err == nil && e.Tag == dwarf.TagInlinedSubroutine {
			scope.inlined, err = w.debug.routineName(naming{entry: e.Offset})
		}
		return scope, err == nil && (scope.ranges != nil || scope.isAbstract), err
	}
	return scope, false, nil
}

const attrGNUAddrBase = dwarf.Attr(0x2133) // before DWARF 5

// variable adds a variable that has a location, or is a constant.
func (w *variableWalk) variable(e *dwarf.Entry, scope *variableScope) error {
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
func (w *variableWalk) describe(v *Variable, e *dwarf.Entry,
	scope *variableScope) (ok bool, err error) {
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
		next, refers := referred(e, false)
		if !refers || next.shared {
			break
		}
		if _, e, err = w.debug.entryAt(next.entry); err != nil || e == nil {
			return false, err
		}
	}
	if name == "" || typed == nil {
		return false, nil
	}
	if scope.ranges == nil && !scope.isAbstract {
		name = scope.name + name
		if linkage != "" {
			name = Demangle(linkage)
		}
	}
	v.Name = name
	v.Type, err = w.types.index(typed)
	return err == nil && v.Type != nowhere, err
}
