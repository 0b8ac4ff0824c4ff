package variables

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"wpptrace/compress/wpp"
)

// Kind is that of the section.
const Kind = wpp.FirstSection + 22

// A Variable is a local variable or an argument of a routine, or a global variable.
type Variable struct {
	Name    string
	Image   int // index in Snapshot.Images
	Routine int // index in Snapshot.Routines; Global
	Size    int // in bytes: 1 to 8
	Type    Type
	Places  []Place // where none has the code that runs, it is nowhere
}

// Global is the routine of a variable that has none.
const Global = -1

// A Type says what the bytes of a variable mean. It is stored in files.
type Type uint8

// The types.
const (
	Unsigned Type = iota
	Signed
	Pointer
	Float // of 4 or 8 bytes
	types
)

// A Place says where a variable is before an instruction in [Lo, Hi) runs.
type Place struct {
	Lo, Hi uint64 // link-time
	Where  Where
	Base   uint8 // for Memory and Number
	Offset int64 // what is added to the base
}

// Where says in what way a place holds its variable. It is stored in files.
type Where uint8

// The ways.
const (
	NotKnown Where = iota
	Memory         // at the address that is the sum of base and offset
	Register       // in the low bytes of the base
	Number         // it is the sum of base and offset
	Vector         // in the low bytes of a vector register, whose number is Offset
	ways
)

// The bases: none, 1 + the number of a general register as the hardware has it, or what is added to
// the link-time addresses of the variable's image.
const (
	NoBase   = 0
	LoadBase = 17
)

// Section returns the section that Of reads. It takes time linear in the places.
func Section(list []Variable) *wpp.Section {
	m := &VariablesSection{}
	for i := range list {
		from := &list[i]
		to := &VariablesSection_Variable{Name: from.Name, Image: uint32(from.Image),
			Routine: uint32(from.Routine + 1), Size: uint32(from.Size), Type: uint32(from.Type)}
		for _, p := range from.Places {
			to.Lo, to.Hi = append(to.Lo, p.Lo), append(to.Hi, p.Hi)
			to.Where = append(to.Where, uint32(p.Where))
			to.Base = append(to.Base, uint32(p.Base))
			to.Offset = append(to.Offset, p.Offset)
		}
		m.Variable = append(m.Variable, to)
	}
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil { // of names that are no text, which Section's callers do not pass
		panic(err)
	}
	return wpp.NewSection(Kind, data)
}

// Of returns the variables of a snapshot that was read with Kind as a known one; nil: it has none.
// It fails where the section is damaged.
func Of(s *wpp.Snapshot) ([]Variable, error) {
	for section := range s.SectionsOf(Kind) {
		list, err := decode(section, s)
		if err != nil {
			return nil, fmt.Errorf("read the section of variables: %w", err)
		}
		return list, nil
	}
	return nil, nil
}

func decode(section *wpp.Section, s *wpp.Snapshot) (list []Variable, err error) {
	data, err := section.Data()
	if err != nil {
		return nil, err
	}
	m := &VariablesSection{}
	if err := proto.Unmarshal(data, m); err != nil {
		return nil, err
	}
	for i, from := range m.Variable {
		v, err := variableOf(from, s)
		if err != nil {
			return nil, fmt.Errorf("variable %d: %w", i, err)
		}
		list = append(list, v)
	}
	return list, nil
}

func variableOf(from *VariablesSection_Variable, s *wpp.Snapshot) (v Variable, err error) {
	n := len(from.Lo)
	switch {
	case int64(from.Image) >= int64(len(s.Images)):
		return v, fmt.Errorf("image %d is none of %d", from.Image, len(s.Images))
	case int64(from.Routine) > int64(len(s.Routines)):
		return v, fmt.Errorf("routine %d is none of %d", from.Routine-1, len(s.Routines))
	case from.Type >= uint32(types), from.Size < 1, from.Size > 8,
		from.Type == uint32(Float) && from.Size != 4 && from.Size != 8:
		return v, fmt.Errorf("%d bytes of type %d", from.Size, from.Type)
	case len(from.Hi) != n || len(from.Where) != n || len(from.Base) != n || len(from.Offset) != n:
		return v, fmt.Errorf("its places are incomplete")
	}
	v = Variable{Name: from.Name, Image: int(from.Image), Routine: int(from.Routine) - 1,
		Size: int(from.Size), Type: Type(from.Type)}
	for i := range n {
		p := Place{from.Lo[i], from.Hi[i], Where(from.Where[i]), uint8(from.Base[i]),
			from.Offset[i]}
		switch isRegister := 1 <= p.Base && p.Base <= 16; {
		case from.Where[i] >= uint32(ways), from.Base[i] > LoadBase,
			p.Where == Register && !isRegister,
			p.Where == Vector && (p.Offset < 0 || p.Offset > 15):
			return v, fmt.Errorf("place %d of it is none", i)
		}
		v.Places = append(v.Places, p)
	}
	return v, nil
}
