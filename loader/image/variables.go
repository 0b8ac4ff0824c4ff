package image

import (
	"cmp"
	"debug/dwarf"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
)

// A Variable is one of a number or a pointer that debug information describes: a local one of some
// code, an argument, or a global one.
type Variable struct {
	Name      string
	IsGlobal  bool
	Size      int // in bytes: 1 to 8
	Kind      VariableKind
	Frame     []byte // the expression of what locations are relative to (DWARF 5, section 3.3.5)
	Locations []Location
}

// A VariableKind says what the bytes of a variable mean.
type VariableKind uint8

// The kinds.
const (
	UnsignedVariable VariableKind = iota
	SignedVariable
	PointerVariable
	FloatVariable
)

// A Location says where a variable is while the code of [Lo, Hi) runs.
type Location struct {
	Lo, Hi     uint64 // link-time
	Expression []byte // DWARF 5, section 2.6; nil: it is not known
	// IsWhole: the location is the variable's only one, and holds in all of its scope, even where
	// it has not been given its first value yet.
	IsWhole bool
}

// Variables returns the global variables, and those local ones that are of code that is wanted: of
// which a routine is asked for by the address of its first code. It reads all entries of the debug
// information. The error is ErrNoLines where there is no debug information.
func (im *Image) Variables(wanted func(code uint64) bool) (list []Variable, err error) {
	err = im.withDebug(func(f elfFile) (err error) {
		list, err = im.variablesOf(f, wanted)
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = ErrNoLines
	}
	if err != nil {
		return nil, fmt.Errorf("read variables of %s: %w", im.Name, err)
	}
	return list, nil
}

func (im *Image) variablesOf(f elfFile, wanted func(uint64) bool) (_ []Variable, err error) {
	defer func() { // debug/dwarf panics on some hostile files
		if p := recover(); p != nil {
			err = fmt.Errorf("malformed debug information: %v", p)
		}
	}()
	if f.debugSection("info") == nil {
		return nil, ErrNoLines
	}
	w := variableWalk{image: im, wanted: wanted, left: maxLocations}
	if w.debug, err = f.openDWARF(); err != nil {
		return nil, err
	}
	_ = f.openSupplement(w.debug) // names that it has are not known then
	for i, name := range []string{"loc", "loclists"} {
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
	return w.found, nil
}

// A variableWalk goes over the entries of all units.
type variableWalk struct {
	image  *Image
	wanted func(uint64) bool
	debug  *debugData
	lists  [2][]byte // .debug_loc, and since DWARF 5 .debug_loclists
	isNew  bool      // the unit is of DWARF 5 or later
	base   uint64    // of the unit's lists
	scopes []variableScope
	found  []Variable
	left   int // locations that there may be yet
}

// A variableScope is what a variable may be within.
type variableScope struct {
	ranges [][2]uint64 // nil: it is not within code
	frame  []byte
}

func (w *variableWalk) unit(u debugUnit) error {
	r, unit, err := w.debug.entryAt(u.first)
	if err != nil || unit == nil || unit.Tag != dwarf.TagCompileUnit || !unit.Children {
		return err
	}
	w.isNew = u.version >= 5
	w.base, _ = unit.Val(dwarf.AttrLowpc).(uint64)
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
		return scope, true, nil
	case dwarf.TagSubprogram:
		if !hasCode(e) {
			return scope, false, nil
		}
		scope.frame, _ = e.Val(dwarf.AttrFrameBase).([]byte)
		scope.ranges, err = w.debug.rangesOf(e)
		enters = err == nil && len(scope.ranges) > 0 && w.wanted(scope.ranges[0][0])
		return scope, enters, err
	case dwarf.TagInlinedSubroutine, dwarf.TagLexDwarfBlock:
		if hasCode(e) {
			scope.ranges, err = w.debug.rangesOf(e)
		}
		return scope, err == nil && scope.ranges != nil, err
	}
	return scope, false, nil
}

// variable adds a variable that has a location, and is a number or a pointer.
func (w *variableWalk) variable(e *dwarf.Entry, scope *variableScope) error {
	at := e.AttrField(dwarf.AttrLocation)
	if at == nil {
		return nil
	}
	v := Variable{IsGlobal: scope.ranges == nil, Frame: scope.frame}
	var ok bool
	var err error
	if v.Name, v.Size, v.Kind, ok, err = w.described(e); err != nil || !ok {
		return err
	}
	ranges := scope.ranges
	if v.IsGlobal {
		ranges = [][2]uint64{{0, math.MaxUint64}}
	}
	switch x := at.Val.(type) {
	case []byte:
		for _, r := range ranges {
			v.Locations = append(v.Locations, Location{r[0], r[1], x, true})
		}
	case int64:
		if at.Class == dwarf.ClassLocListPtr {
			v.Locations, ok = w.list(x)
		}
		if at.Class != dwarf.ClassLocListPtr || !ok {
			v.Locations = v.Locations[:0]
			for _, r := range ranges {
				v.Locations = append(v.Locations, Location{Lo: r[0], Hi: r[1]})
			}
		}
	}
	if w.left -= 1 + len(v.Locations); w.left < 0 {
		return fmt.Errorf("more than %d locations of variables", maxLocations)
	}
	w.found = append(w.found, v)
	return nil
}

// mostReferred is how many entries one refers to for its name and its type, each to the next.
const mostReferred = 16

// described is what an entry, or one that it refers to, says of a variable; false: it has no name,
// or is neither a number nor a pointer.
func (w *variableWalk) described(e *dwarf.Entry) (name string, size int, kind VariableKind,
	ok bool, err error) {
	var of dwarf.Offset
	for range mostReferred {
		if name == "" {
			name, _ = e.Val(dwarf.AttrName).(string)
		}
		if t, ok := e.Val(dwarf.AttrType).(dwarf.Offset); ok && of == 0 {
			of = t
		}
		next, refers := referred(e, false)
		if !refers || next.shared || name != "" && of != 0 {
			break
		}
		if _, e, err = w.debug.entryAt(next.entry); err != nil || e == nil {
			return "", 0, 0, false, err
		}
	}
	if name == "" || of == 0 {
		return "", 0, 0, false, nil
	}
	size, kind, err = w.typeAt(of)
	return name, size, kind, size > 0, err
}

// typeAt is the size in bytes of what a type has, and what it is; 0: it is neither a number nor a
// pointer.
func (w *variableWalk) typeAt(of dwarf.Offset) (size int, kind VariableKind, err error) {
	const pointer = 8
	for range mostReferred {
		_, e, err := w.debug.entryAt(of)
		if err != nil || e == nil {
			return 0, 0, err
		}
		switch e.Tag {
		case dwarf.TagPointerType, dwarf.TagReferenceType, dwarf.TagRvalueReferenceType:
			return pointer, PointerVariable, nil
		case dwarf.TagBaseType:
			size, kind = baseType(e)
			return size, kind, nil
		case dwarf.TagTypedef, dwarf.TagConstType, dwarf.TagVolatileType, dwarf.TagRestrictType,
			dwarf.TagEnumerationType, tagAtomicType:
		default:
			return 0, 0, nil
		}
		var ok bool
		if of, ok = e.Val(dwarf.AttrType).(dwarf.Offset); !ok {
			if n, _ := e.Val(dwarf.AttrByteSize).(int64); e.Tag == dwarf.TagEnumerationType &&
				0 < n && n <= 8 {
				return int(n), UnsignedVariable, nil
			}
			return 0, 0, nil
		}
	}
	return 0, 0, nil
}

const tagAtomicType = dwarf.Tag(0x47)

// baseType is the size of a base type, and what it is (DWARF 5, section 5.1.1); 0: another than an
// integer, or than a floating-point number of 4 or 8 bytes.
func baseType(e *dwarf.Entry) (size int, kind VariableKind) {
	const boolean, float, signed, signedChar, unsigned, unsignedChar, utf = 2, 4, 5, 6, 7, 8, 0x10
	n, _ := e.Val(dwarf.AttrByteSize).(int64)
	if n < 1 || n > 8 {
		return 0, 0
	}
	encoding, _ := e.Val(dwarf.AttrEncoding).(int64)
	switch encoding {
	case boolean, unsigned, unsignedChar, utf:
		return int(n), UnsignedVariable
	case signed, signedChar:
		return int(n), SignedVariable
	case float:
		if n == 4 || n == 8 {
			return int(n), FloatVariable
		}
	}
	return 0, 0
}

// list reads a location list; false: it has what is not known here, or is damaged.
func (w *variableWalk) list(at int64) (list []Location, ok bool) {
	data := w.lists[0]
	if w.isNew {
		data = w.lists[1]
	}
	if at < 0 || at >= int64(len(data)) {
		return nil, false
	}
	c := cursor{data: data, at: int(at)}
	next := olderLocation
	if w.isNew {
		next = newerLocation
	}
	for base := w.base; len(list) < w.left; {
		x, kind := next(&c, &base)
		switch {
		case kind == badLocation || c.failed:
			return nil, false
		case kind == noLocation:
			return list, true
		case kind == aLocation && x.Lo < x.Hi && len(x.Expression) > 0: // else nowhere
			list = append(list, x)
		}
	}
	return nil, false
}

// What an entry of a location list is.
const (
	badLocation = iota
	noLocation  // the end of the list
	newBase
	aLocation
)

// olderLocation reads an entry of a list of DWARF 2 to 4 (DWARF 4, section 2.6.2).
func olderLocation(c *cursor, base *uint64) (x Location, kind int) {
	lo, hi := c.uint(8), c.uint(8)
	switch {
	case lo == 0 && hi == 0:
		return x, noLocation
	case lo == math.MaxUint64:
		*base = hi
		return x, newBase
	}
	expression := c.take(c.uint(2))
	x = Location{Lo: *base + lo, Hi: *base + hi, Expression: expression.data[expression.at:]}
	return x, aLocation
}

// newerLocation reads an entry of a list (DWARF 5, section 7.7.3).
func newerLocation(c *cursor, base *uint64) (x Location, kind int) {
	const end, offsets, address, startEnd, startLength = 0, 4, 6, 7, 8
	switch c.byte() {
	case end:
		return x, noLocation
	case address:
		*base = c.uint(8)
		return x, newBase
	case offsets:
		x.Lo, x.Hi = *base+c.uleb(), *base+c.uleb()
	case startEnd:
		x.Lo, x.Hi = c.uint(8), c.uint(8)
	case startLength:
		x.Lo = c.uint(8)
		x.Hi = x.Lo + c.uleb()
	default:
		return x, badLocation
	}
	expression := c.take(c.uleb())
	x.Expression = expression.data[expression.at:]
	return x, aLocation
}

// BodyAt is where the body of a routine begins whose code begins at an address: what is before it
// belongs to the line that opens it, and sets up its frame. It is the address where that is not
// known.
func (l *Lines) BodyAt(code uint64) uint64 {
	i, found := slices.BinarySearchFunc(l.rows, code,
		func(r lineRow, addr uint64) int { return cmp.Compare(r.addr, addr) })
	if found && i+1 < len(l.rows) && l.rows[i+1].file != noFile {
		return l.rows[i+1].addr
	}
	return code
}
