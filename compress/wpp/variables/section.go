package variables

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"wpptrace/compress/wpp"
)

// Kind is that of the section.
const Kind = wpp.FirstSection + 22

// A Table has variables, and the types that they lead to.
type Table struct {
	Variables []Variable
	Types     []Type
}

// A Variable is a local variable or an argument of a routine, or a global variable.
type Variable struct {
	Name    string
	Line    int    // of its declaration; 0: it is not known
	Inlined string // the routine that it is of, where that is inlined in Routine; "": it is not
	Image   int    // index in Snapshot.Images
	Routine int    // index in Snapshot.Routines; Global
	Type    int    // index in Table.Types
	Places  []Place
}

// Global is the routine of a variable that has none.
const Global = -1

// A Place says where a variable is before an instruction in [Lo, Hi) runs.
type Place struct {
	Lo, Hi     uint64 // link-time
	Expression []byte // as package location has them, of the variable's image; nil: not known
}

// A Type says what the bytes of a variable mean.
type Type struct {
	Kind    TypeKind
	Name    string // "": it has none
	Size    int64  // bytes; 0: not known
	Of      int    // index of what it points to, or of its elements; NoType: not known
	Count   int64  // of elements; -1: not known
	Members []Member
	Names   []Enumerator // of numbers
}

// NoType is no index of a type.
const NoType = -1

// A TypeKind is a kind of types. It is stored in files.
type TypeKind uint8

// The kinds. Those before Pointer have 1 to 8 bytes, but Other.
const (
	Other TypeKind = iota // their bytes mean nothing that is known
	Unsigned
	Signed
	Float // of 4 or 8 bytes
	Bool
	Char // a character without a sign
	SignedChar
	Pointer
	Struct
	Array
	kinds
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

// Section returns the section that Of reads. It takes time linear in the table.
func Section(t *Table) *wpp.Section {
	m := &VariablesSection{}
	expressions := map[string]uint32{}
	for i := range t.Variables {
		from := &t.Variables[i]
		to := &VariablesSection_Variable{Name: from.Name, Line: uint32(from.Line),
			Inlined: from.Inlined, Image: uint32(from.Image), Routine: uint32(from.Routine + 1),
			Type: uint32(from.Type)}
		for _, p := range from.Places {
			to.Lo, to.Hi = append(to.Lo, p.Lo), append(to.Hi, p.Hi)
			number := uint32(0)
			if text := string(p.Expression); text != "" {
				if number = expressions[text]; number == 0 {
					m.Expression = append(m.Expression, p.Expression)
					number = uint32(len(m.Expression))
					expressions[text] = number
				}
			}
			to.Expression = append(to.Expression, number)
		}
		m.Variable = append(m.Variable, to)
	}
	for i := range t.Types {
		m.Type = append(m.Type, typeMessage(&t.Types[i]))
	}
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil { // of names that are no text, which Section's callers do not pass
		panic(err)
	}
	return wpp.NewSection(Kind, data)
}

func typeMessage(from *Type) *VariablesSection_Type {
	to := &VariablesSection_Type{Kind: uint32(from.Kind), Name: from.Name, Size: uint64(from.Size),
		Of: uint32(from.Of + 1), Count: uint64(from.Count + 1)}
	for _, m := range from.Members {
		to.Member = append(to.Member, &VariablesSection_Member{Name: m.Name, Type: uint32(m.Type),
			Offset: uint64(m.Offset), FirstBit: uint32(m.FirstBit), Bits: uint32(m.Bits),
			IsBase: m.IsBase})
	}
	for _, x := range from.Names {
		to.Enumerator, to.Value = append(to.Enumerator, x.Name), append(to.Value, x.Value)
	}
	return to
}

// Of returns the variables of a snapshot that was read with Kind as a known one; nil: it has none.
// It fails where the section is damaged.
func Of(s *wpp.Snapshot) (*Table, error) {
	for section := range s.SectionsOf(Kind) {
		t, err := decode(section, s)
		if err != nil {
			return nil, fmt.Errorf("read the section of variables: %w", err)
		}
		return t, nil
	}
	return nil, nil
}

func decode(section *wpp.Section, s *wpp.Snapshot) (t *Table, err error) {
	data, err := section.Data()
	if err != nil {
		return nil, err
	}
	m := &VariablesSection{}
	if err := proto.Unmarshal(data, m); err != nil {
		return nil, err
	}
	t = &Table{}
	for i, from := range m.Type {
		x, err := typeOf(from, len(m.Type))
		if err != nil {
			return nil, fmt.Errorf("type %d: %w", i, err)
		}
		t.Types = append(t.Types, x)
	}
	for i, from := range m.Variable {
		v, err := variableOf(from, m, s)
		if err != nil {
			return nil, fmt.Errorf("variable %d: %w", i, err)
		}
		t.Variables = append(t.Variables, v)
	}
	return t, nil
}

func variableOf(from *VariablesSection_Variable, m *VariablesSection,
	s *wpp.Snapshot) (v Variable, err error) {
	n := len(from.Lo)
	switch {
	case int64(from.Image) >= int64(len(s.Images)):
		return v, fmt.Errorf("image %d is none of %d", from.Image, len(s.Images))
	case int64(from.Routine) > int64(len(s.Routines)):
		return v, fmt.Errorf("routine %d is none of %d", from.Routine-1, len(s.Routines))
	case int64(from.Type) >= int64(len(m.Type)):
		return v, fmt.Errorf("type %d is none of %d", from.Type, len(m.Type))
	case len(from.Hi) != n || len(from.Expression) != n:
		return v, fmt.Errorf("its places are incomplete")
	}
	v = Variable{Name: from.Name, Line: int(from.Line), Inlined: from.Inlined,
		Image: int(from.Image), Routine: int(from.Routine) - 1, Type: int(from.Type)}
	for i, number := range from.Expression {
		p := Place{Lo: from.Lo[i], Hi: from.Hi[i]}
		if int64(number) > int64(len(m.Expression)) {
			return v, fmt.Errorf("expression %d is none of %d", number-1, len(m.Expression))
		}
		if number > 0 {
			p.Expression = m.Expression[number-1]
		}
		v.Places = append(v.Places, p)
	}
	return v, nil
}

// most is what sizes, offsets and counts are at most, so that no sum of some of them is too large.
const most = 1 << 40

func typeOf(from *VariablesSection_Type, types int) (t Type, err error) {
	t = Type{Kind: TypeKind(from.Kind), Name: from.Name, Size: int64(from.Size),
		Of: int(from.Of) - 1, Count: int64(from.Count) - 1}
	switch isNumber := t.Kind != Other && t.Kind < Pointer; {
	case from.Kind >= uint32(kinds), from.Size > most, from.Count > most,
		isNumber && (t.Size < 1 || t.Size > 8), t.Kind == Float && t.Size != 4 && t.Size != 8,
		t.Kind == Pointer && t.Size != 8:
		return t, fmt.Errorf("%d bytes of kind %d, %d times", from.Size, from.Kind, from.Count)
	case int64(from.Of) > int64(types):
		return t, fmt.Errorf("type %d is none of %d", from.Of-1, types)
	case len(from.Enumerator) != len(from.Value):
		return t, fmt.Errorf("its names are incomplete")
	}
	for i, m := range from.Member {
		if int64(m.Type) >= int64(types) || m.Offset > most || m.FirstBit > 7 || m.Bits > 64 {
			return t, fmt.Errorf("member %d is none", i)
		}
		t.Members = append(t.Members, Member{m.Name, int(m.Type), int64(m.Offset),
			int(m.FirstBit), int(m.Bits), m.IsBase})
	}
	for i, name := range from.Enumerator {
		t.Names = append(t.Names, Enumerator{name, from.Value[i]})
	}
	return t, nil
}
