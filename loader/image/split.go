package image

import (
	"cmp"
	"debug/dwarf"
	"fmt"
	"path"
)

// splitUnits are the units of which a program has line tables alone: -gsplit-dwarf leaves their
// entries, inlined calls among them, in files of their own (DWARF 5, section 7.3.2), or dwp in one
// next to the program. These are not read: a program names them by paths, and nothing that an image
// says names a file that is opened.
type splitUnits struct {
	number int
	first  string // the file of the first one
}

// The attributes that name the file, before DWARF 5 and since.
const (
	attrGNUDwoName = dwarf.Attr(0x2130)
	attrDwoName    = dwarf.Attr(0x76)
)

// add notes a unit if its entries are elsewhere.
func (s *splitUnits) add(unit *dwarf.Entry) {
	older, _ := unit.Val(attrGNUDwoName).(string)
	newer, _ := unit.Val(attrDwoName).(string)
	name := cmp.Or(newer, older)
	if name == "" || unit.Children { // some compilers leave what is inlined
		return
	}
	if s.number++; s.number > 1 {
		return
	}
	if dir, _ := unit.Val(dwarf.AttrCompDir).(string); dir != "" && !path.IsAbs(name) {
		name = path.Join(dir, name)
	}
	s.first = name
}

// missing says what is not known for that; nil: nothing is.
func (s *splitUnits) missing() error {
	const remedy = "which are not read: build without -gsplit-dwarf"
	switch s.number {
	case 0:
		return nil
	case 1:
		return fmt.Errorf("they are in %q, or in a .dwp file of the program, %s", s.first, remedy)
	}
	return fmt.Errorf("they are in %d .dwo files, the first %q, or in a .dwp file of the "+
		"program, %s",
		s.number, s.first, remedy)
}
