package variables

import (
	"debug/dwarf"
	"fmt"

	"wpptrace/loader/image"
)

// NoType is no index of a type.
const NoType = -1

// A Type says what the bytes of a variable mean. Names of others, as typedef gives them, and
// qualifiers are left out.
type Type struct {
	Kind    Kind
	Name    string // "": it has none
	Size    int64  // bytes; 0: not known
	Of      int    // index of what it points to, or of its elements; NoType: not known
	Count   int64  // of elements; -1: not known
	Members []Member
	Names   []Enumerator
}

// A Kind is a kind of types.
type Kind uint8

// The kinds.
const (
	Other Kind = iota // that are not read
	Unsigned
	Signed
	Float // of 4 or 8 bytes
	Bool
	Char // a character without a sign
	SignedChar
	Pointer // or a reference
	Struct  // or a class or union
	Array
)

// A Member is one of a structure.
type Member struct {
	Name     string // "": it has none, and its members are those of what it is in
	Type     int
	Offset   int64 // bytes
	FirstBit int   // of the byte there
	Bits     int   // 0: it is no bit field
	IsBase   bool  // it is what a class inherits
}

// An Enumerator is a name of a number.
type Enumerator struct {
	Name  string
	Value int64
}

// typeTable are the types that variables lead to, each once for an entry that describes it.
type typeTable struct {
	debug *image.Debug
	list  []Type
	known map[dwarf.Offset]int
	wait  []dwarf.Offset // that are in list, and have not been read
	left  int            // types, members and names that there may be yet
}

// index is that of the type which an entry refers to; NoType: it refers to none.
func (t *typeTable) index(e *dwarf.Entry) (int, error) {
	of, ok := e.Val(dwarf.AttrType).(dwarf.Offset)
	if !ok {
		return NoType, nil
	}
	i, err := t.add(of)
	for err == nil && len(t.wait) > 0 {
		at := t.wait[len(t.wait)-1]
		t.wait = t.wait[:len(t.wait)-1]
		err = t.read(at)
	}
	return i, err
}

// add is the index of a type, which is to be read if it is new.
func (t *typeTable) add(of dwarf.Offset) (int, error) {
	for range mostReferred {
		if i, ok := t.known[of]; ok {
			return i, nil
		}
		_, e, err := t.debug.EntryAt(of)
		if err != nil || e == nil {
			return NoType, err
		}
		switch e.Tag {
		case dwarf.TagTypedef, dwarf.TagConstType, dwarf.TagVolatileType, dwarf.TagRestrictType,
			tagAtomicType:
			next, ok := e.Val(dwarf.AttrType).(dwarf.Offset)
			if !ok { // void
				return NoType, nil
			}
			of = next
			continue
		}
		if err := t.charge(1); err != nil {
			return NoType, err
		}
		i := len(t.list)
		t.list = append(t.list, Type{Of: NoType})
		t.known[of] = i
		t.wait = append(t.wait, of)
		return i, nil
	}
	return NoType, nil
}

func (t *typeTable) charge(n int) error {
	if t.left -= n; t.left < 0 {
		return fmt.Errorf("more than %d types of variables, with their members", maxTypes)
	}
	return nil
}

// reference is the type that an entry refers to, which is read later.
func (t *typeTable) reference(e *dwarf.Entry) (int, error) {
	of, ok := e.Val(dwarf.AttrType).(dwarf.Offset)
	if !ok {
		return NoType, nil
	}
	return t.add(of)
}

const tagAtomicType = dwarf.Tag(0x47)

// read reads a type that has been added.
func (t *typeTable) read(at dwarf.Offset) (err error) {
	r, e, err := t.debug.EntryAt(at)
	if err != nil || e == nil {
		return err
	}
	x := Type{Of: NoType}
	x.Name, _ = e.Val(dwarf.AttrName).(string)
	x.Size, _ = e.Val(dwarf.AttrByteSize).(int64)
	switch e.Tag {
	case dwarf.TagPointerType, dwarf.TagReferenceType, dwarf.TagRvalueReferenceType:
		x.Kind, x.Size = Pointer, 8
		x.Of, err = t.reference(e)
	case dwarf.TagBaseType:
		x.Kind = baseType(e)
	case dwarf.TagEnumerationType:
		err = t.readEnumeration(r, e, &x)
	case dwarf.TagStructType, dwarf.TagClassType, dwarf.TagUnionType:
		if x.Kind = Struct; e.Children {
			err = t.readMembers(r, &x)
		}
	case dwarf.TagArrayType:
		err = t.readArray(r, e, &x)
	}
	t.list[t.known[at]] = x
	return err
}

// children gives the entries within one, whose reader stands behind it, to a function.
func (t *typeTable) children(r *dwarf.Reader, each func(e *dwarf.Entry) error) error {
	for {
		e, err := t.debug.Entry(r)
		if err != nil || e == nil || e.Tag == 0 {
			return err
		}
		if err := each(e); err != nil {
			return err
		}
		if e.Children {
			r.SkipChildren()
		}
	}
}

func (t *typeTable) readMembers(r *dwarf.Reader, x *Type) error {
	return t.children(r, func(e *dwarf.Entry) error {
		isBase := e.Tag == dwarf.TagInheritance
		if e.Tag != dwarf.TagMember && !isBase {
			return nil
		}
		if external, _ := e.Val(dwarf.AttrExternal).(bool); external { // static
			return nil
		}
		m := Member{IsBase: isBase}
		m.Name, _ = e.Val(dwarf.AttrName).(string)
		switch at := e.Val(dwarf.AttrDataMemberLoc).(type) {
		case int64:
			m.Offset = at
		case nil: // of a union, or a bit field
		default: // of a base that is shared
			return nil
		}
		var err error
		if m.Type, err = t.reference(e); err != nil || m.Type == NoType {
			return err
		}
		if bits, ok := e.Val(dwarf.AttrBitSize).(int64); ok && !t.bitField(e, &m, bits) {
			return nil
		}
		x.Members = append(x.Members, m)
		return t.charge(1)
	})
}

// bitField fills in where a bit field is; false: that is not known.
func (t *typeTable) bitField(e *dwarf.Entry, m *Member, bits int64) bool {
	const most = 64
	first, ok := e.Val(dwarf.AttrDataBitOffset).(int64)
	if !ok { // before DWARF 4: from the highest bit of the number that it is in
		size, _ := e.Val(dwarf.AttrByteSize).(int64)
		from, has := e.Val(dwarf.AttrBitOffset).(int64)
		if first = m.Offset*8 + size*8 - from - bits; !has || size < 1 || size > 8 {
			return false
		}
	}
	if bits < 1 || bits > most || first < 0 {
		return false
	}
	m.Offset, m.FirstBit, m.Bits = first/8, int(first%8), int(bits)
	return true
}

func (t *typeTable) readEnumeration(r *dwarf.Reader, e *dwarf.Entry, x *Type) (err error) {
	x.Kind = Unsigned
	if x.Size < 1 || x.Size > 8 {
		x.Kind = Other
	}
	if of, ok := e.Val(dwarf.AttrType).(dwarf.Offset); ok {
		if _, base, err := t.debug.EntryAt(of); err != nil {
			return err
		} else if base != nil && base.Tag == dwarf.TagBaseType && baseType(base) == Signed {
			x.Kind = Signed
		}
	}
	if !e.Children {
		return nil
	}
	return t.children(r, func(e *dwarf.Entry) error {
		name, _ := e.Val(dwarf.AttrName).(string)
		if value, ok := e.Val(dwarf.AttrConstValue).(int64); ok && e.Tag == dwarf.TagEnumerator {
			x.Names = append(x.Names, Enumerator{name, value})
			return t.charge(1)
		}
		return nil
	})
}

// readArray reads an array; one of several dimensions is one of arrays.
func (t *typeTable) readArray(r *dwarf.Reader, e *dwarf.Entry, x *Type) (err error) {
	x.Kind, x.Count = Array, -1
	if x.Of, err = t.reference(e); err != nil || !e.Children {
		return err
	}
	var counts []int64
	err = t.children(r, func(e *dwarf.Entry) error {
		if e.Tag == dwarf.TagSubrangeType {
			counts = append(counts, countOf(e))
		}
		return t.charge(1)
	})
	for i := len(counts) - 1; i > 0 && err == nil; i-- { // their sizes follow from these
		inner := Type{Kind: Array, Of: x.Of, Count: counts[i]}
		x.Of = len(t.list)
		t.list = append(t.list, inner)
		err = t.charge(1)
	}
	if len(counts) > 0 {
		x.Count = counts[0]
	}
	return err
}

// countOf is how many elements a dimension has; -1: it is not known.
func countOf(e *dwarf.Entry) int64 {
	if n, ok := e.Val(dwarf.AttrCount).(int64); ok && n >= 0 {
		return n
	}
	if last, ok := e.Val(dwarf.AttrUpperBound).(int64); ok && last >= -1 && last < 1<<40 {
		return last + 1
	}
	return -1
}

// baseType is what a base type is (DWARF 5, section 5.1.1).
func baseType(e *dwarf.Entry) Kind {
	const boolean, float, signed, signedChar, unsigned, unsignedChar, utf = 2, 4, 5, 6, 7, 8, 0x10
	n, _ := e.Val(dwarf.AttrByteSize).(int64)
	if n < 1 || n > 8 {
		return Other
	}
	encoding, _ := e.Val(dwarf.AttrEncoding).(int64)
	switch encoding {
	case boolean:
		return Bool
	case unsigned:
		return Unsigned
	case unsignedChar, utf:
		return Char
	case signed:
		return Signed
	case signedChar:
		return SignedChar
	case float:
		if n == 4 || n == 8 {
			return Float
		}
	}
	return Other
}
