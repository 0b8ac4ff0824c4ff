package values

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"wpptrace/compress/wet/machine"
	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/variables"
	"wpptrace/query/names"
)

// Asked is a variable, or a part of what it holds or leads to.
type Asked struct {
	Variable *variables.Variable
	Type     int    // of the part: index in the table's types
	text     string // of the part, with the variable's name in it
	table    *variables.Table
	// How to get there: some bytes behind where the variable is, and then each time some bytes
	// behind where the pointer there leads to.
	offsets        []int64
	firstBit, bits int // of the byte there; bits is 0: it is no bit field
}

// String is the part as source code has it: the variable's name with what is behind it.
func (a *Asked) String() string { return a.text }

// Kind is that of the part's type.
func (a *Asked) Kind() *variables.Type { return &a.table.Types[a.Type] }

// Bits is how many of them a number has.
func (a *Asked) Bits() int {
	if a.bits > 0 {
		return a.bits
	}
	return 8 * int(a.Kind().Size)
}

// IsNumber reports whether it is a number, a character or a pointer, and no structure of these.
func (a *Asked) IsNumber() bool {
	kind := a.Kind().Kind
	return kind != variables.Other && kind < variables.Struct
}

// Whole is all of a variable of a table.
func Whole(t *variables.Table, v *variables.Variable) *Asked {
	return &Asked{Variable: v, Type: v.Type, text: v.Name, table: t, offsets: []int64{0}}
}

// part is a part of a part: a text behind it, and some bytes behind its first.
func (a *Asked) part(of int, text string, offset int64) *Asked {
	p := *a
	p.Type, p.text, p.offsets = of, text, slices.Clone(a.offsets)
	p.offsets[len(p.offsets)-1] += offset
	return &p
}

// target is what a pointer leads to; nil: that is no type that is known.
func (a *Asked) target(text string) *Asked {
	of := a.Kind().Of
	if a.Kind().Kind != variables.Pointer || of == variables.NoType || a.bits > 0 {
		return nil
	}
	p := a.part(of, text, 0)
	p.offsets = append(p.offsets, 0)
	return p
}

// pointee is target with a text of its own: that of a structure is completed by a field.
func (a *Asked) pointee() *Asked {
	p := a.target("*" + a.text)
	if p != nil && p.Kind().Kind == variables.Struct {
		p.text = a.text + "->"
	}
	return p
}

// element is the nth element of an array, or of what a pointer leads to; nil: there is none.
func (a *Asked) element(n int64) *Asked {
	from, t := a, a.Kind()
	if t.Kind == variables.Pointer {
		if from = a.target(a.text); from == nil {
			return nil
		}
		from.text = a.text
		return from.part(from.Type, fmt.Sprintf("%s[%d]", a.text, n), n*a.sizeOf(from.Type))
	}
	const most = 1 << 30
	if t.Kind != variables.Array || t.Of == variables.NoType || n < 0 || n > most ||
		t.Count > 0 && n >= t.Count {
		return nil
	}
	return a.part(t.Of, fmt.Sprintf("%s[%d]", a.text, n), n*a.sizeOf(t.Of))
}

// sizeOf is how many bytes one of a type takes.
func (a *Asked) sizeOf(of int) int64 {
	size := int64(1)
	for range mostNested {
		switch t := &a.table.Types[of]; {
		case t.Kind != variables.Array || t.Size > 0:
			return size * t.Size
		case t.Of == variables.NoType || t.Count < 0 || size > 1<<40:
			return 0
		default:
			size, of = size*t.Count, t.Of
		}
	}
	return 0
}

// mostNested is how many types are within each other without a pointer between them, at most, and
// mostWithin how many parts of one part are looked at: those of a damaged table may have no end.
const (
	mostNested = 16
	mostWithin = 1 << 14
)

// field is the field of a structure with a name, or of one without a name, or that it inherits,
// within it; nil: it has none.
func (a *Asked) field(name string) *Asked {
	left := mostWithin
	return a.fieldWithin(name, 0, &left)
}

func (a *Asked) fieldWithin(name string, depth int, left *int) *Asked {
	t := a.Kind()
	if *left--; t.Kind != variables.Struct || depth > mostNested || *left < 0 {
		return nil
	}
	for i := range t.Members {
		if m := &t.Members[i]; m.Name == name && !m.IsBase {
			return a.member(m)
		}
	}
	for i := range t.Members {
		if m := &t.Members[i]; *left >= 0 && (m.Name == "" || m.IsBase) {
			if f := a.member(m).fieldWithin(name, depth+1, left); f != nil {
				return f
			}
		}
	}
	return nil
}

func (a *Asked) member(m *variables.Member) *Asked {
	text := a.text
	if m.Name != "" && !m.IsBase {
		text = strings.TrimSuffix(text, "->")
		separator := "."
		if len(text) < len(a.text) {
			separator = "->"
		}
		text += separator + m.Name
	}
	f := a.part(m.Type, text, m.Offset)
	f.firstBit, f.bits = m.FirstBit, m.Bits
	return f
}

// Parts are the fields of a structure, the elements of an array, as many as most, or what a pointer
// leads to.
func (a *Asked) Parts(most int) (list []*Asked) {
	switch t := a.Kind(); t.Kind {
	case variables.Pointer:
		p := a.pointee()
		if p == nil {
			return nil
		}
		if p.Kind().Kind == variables.Struct {
			return p.Parts(most)
		}
		return []*Asked{p}
	case variables.Struct:
		for i := range t.Members[:min(len(t.Members), most)] {
			list = append(list, a.member(&t.Members[i]))
		}
	case variables.Array:
		for n := range min(t.Count, int64(most)) {
			if x := a.element(n); x != nil {
				list = append(list, x)
			}
		}
	}
	return list
}

// numbers are the numbers that a part is made of, without what pointers lead to; of more than most
// there are some more than that.
func (a *Asked) numbers(most int) []*Asked {
	left := mostWithin
	return a.appendNumbers(nil, most, 0, &left)
}

func (a *Asked) appendNumbers(list []*Asked, most, depth int, left *int) []*Asked {
	if a.IsNumber() {
		return append(list, a)
	}
	if *left--; depth > mostNested || *left < 0 {
		return list
	}
	for _, x := range a.Parts(most + 1) {
		if len(list) <= most {
			list = x.appendNumbers(list, most, depth+1, left)
		}
	}
	return list
}

// Has reports whether the variable is anywhere before the instruction at a link-time address.
func (a *Asked) Has(addr uint64) bool { return codeAt(a.Variable, addr) != nil }

// placeAt is where it is before the instruction at a link-time address. has is false where the
// variable is nowhere there.
func (a *Asked) placeAt(addr uint64, at Moment, entry *Entry) (p place, has bool) {
	where := codeAt(a.Variable, addr)
	if where == nil {
		return p, false
	}
	e := evaluation{at: at, entry: entry, image: a.Variable.Image}
	p, ok := e.evaluate(where.Expression)
	if !ok || len(where.Expression) == 0 {
		return place{}, true
	}
	for _, n := range a.offsets[:len(a.offsets)-1] {
		pointer, k := p.read(at, n, 8)
		p = place{inMemory: true, addr: word{pointer, k}}
	}
	return p, true
}

// At is what a number has before the instruction at a link-time address, in its low bits, zeroes
// above. has is false where the variable is nowhere there: code of which it is no variable, or that
// has optimized it out. entry is what registers held when the activation began; nil: it is not
// known.
func (a *Asked) At(addr uint64, at Moment, entry *Entry) (value uint64, k machine.Knowledge,
	has bool) {
	p, has := a.placeAt(addr, at, entry)
	size := (a.firstBit + a.Bits() + 7) / 8
	if !has || size > 8 || size < 1 {
		return 0, machine.Unknown, has
	}
	value, k = p.read(at, a.offsets[len(a.offsets)-1], size)
	return a.number(value), k, true
}

// number is the number in the bytes where it is.
func (a *Asked) number(bytes uint64) uint64 {
	return bytes >> a.firstBit << (64 - a.Bits()) >> (64 - a.Bits())
}

// Address is where in memory it is before the instruction at a link-time address, and how many
// bytes it has there; Unknown: it is in a register, or nobody knows where.
func (a *Asked) Address(addr uint64, at Moment, entry *Entry) (first uint64, size int64,
	k machine.Knowledge) {
	p, _ := a.placeAt(addr, at, entry)
	if !p.inMemory || p.addr.known == machine.Unknown {
		return 0, 0, machine.Unknown
	}
	size = a.sizeOf(a.Type)
	if a.bits > 0 {
		size = int64(a.firstBit+a.bits+7) / 8
	}
	return p.addr.n + uint64(a.offsets[len(a.offsets)-1]), size, p.addr.known
}

// codeAt is where a variable is before an instruction; nil: nowhere.
func codeAt(v *variables.Variable, addr uint64) *variables.Place {
	for i := range v.Places {
		if p := &v.Places[i]; p.Lo <= addr && addr < p.Hi {
			return p
		}
	}
	return nil
}

// mostParts is how many numbers what is asked for has at most.
const mostParts = 64

// VariablesNamed are the numbers and pointers that a text stands for: NAME or ROUTINE.NAME, with
// what is behind it, as NAME.FIELD, NAME->FIELD, NAME[3] and *NAME. Of what is made of several
// there is each. Of one routine several may have a name, in different blocks of its source. It
// fails where there is none.
func VariablesNamed(s *wpp.Snapshot, text string) ([]*Asked, error) {
	if !Has(s) {
		return nil, ErrNone
	}
	t, err := variables.Of(s)
	if err != nil {
		return nil, err
	}
	if t == nil {
		t = &variables.Table{}
	}
	f := search{snapshot: s, table: t}
	list, err := f.named(text)
	if err != nil {
		return nil, fmt.Errorf("find variable %s: %w", names.Printable(text), err)
	}
	return list, nil
}

// A search is one for variables.
type search struct {
	snapshot *wpp.Snapshot
	table    *variables.Table
	err      error // why one that has the name does not have what is behind it
}

func (f *search) named(text string) (list []*Asked, err error) {
	rest := strings.TrimLeft(text, "*")
	stars := len(text) - len(rest)
	rest, onlyGlobal := strings.CutPrefix(rest, "::")
	list = f.pick(rest, stars, func(v *variables.Variable) bool {
		return !onlyGlobal || v.Routine == variables.Global && v.Inlined == ""
	})
	for i := 0; i < len(rest) && len(list) == 0 && !onlyGlobal; i++ {
		if rest[i] != '.' || !f.hasName(rest[i+1:]) {
			continue
		}
		of, err := names.Of(f.snapshot).Routines(rest[:i])
		list = f.pick(rest[i+1:], stars, func(v *variables.Variable) bool {
			switch {
			case v.Inlined != "":
				return isCalled(v.Inlined, rest[:i])
			case len(of) > 0:
				return slices.Contains(of, v.Routine)
			}
			return v.Routine >= 0 &&
				isCalled(names.Plain(&f.snapshot.Routines[v.Routine]), rest[:i])
		})
		if len(list) == 0 && err != nil && f.err == nil {
			f.err = err
		}
	}
	switch {
	case len(list) > 0:
		return list, nil
	case f.err != nil:
		return nil, f.err
	}
	return nil, f.none(rest)
}

// none says that no variable is called as a text begins, and which there are.
func (f *search) none(text string) error {
	const most = 12
	var known, near []string
	for i := range f.table.Variables {
		v := &f.table.Variables[i]
		known = append(known, v.Name)
		if routine, _, ok := cutLast(text, '.'); ok && (isCalled(v.Inlined, routine) ||
			v.Routine >= 0 && isCalled(names.Plain(&f.snapshot.Routines[v.Routine]), routine)) {
			near = append(near, names.Printable(v.Name))
		}
	}
	if len(known) == 0 {
		return errors.New("the snapshot has none: build the program with -g")
	}
	if len(near) == 0 {
		near = names.Similar(text, known, most)
	}
	slices.Sort(near)
	near = slices.Compact(near)
	if len(near) == 0 {
		return errors.New("no traced routine has one of the name, and no global one has it that " +
			"is somewhere")
	}
	return fmt.Errorf("there is none of the name that is somewhere, but %s",
		strings.Join(near[:min(len(near), most)], ", "))
}

// isCalled reports whether a text is the name of a routine, or its end, without arguments and what
// compilers put behind it.
func isCalled(routine, text string) bool {
	var plain strings.Builder
	depth := 0
	for _, c := range routine {
		switch c {
		case '<', '(':
			depth++
		case '>', ')':
			depth--
		default:
			if depth == 0 {
				plain.WriteRune(c)
			}
		}
	}
	name, _, _ := strings.Cut(plain.String(), ".")
	return text != "" && (text == routine || text == name || strings.HasSuffix(name, "::"+text))
}

// behindName is what is behind the name of a variable in a text that begins with it.
func behindName(v *variables.Variable, text string) (rest string, ok bool) {
	short := v.Name
	if v.Routine == variables.Global {
		short = short[strings.LastIndex(short, "::")+1:]
		short = strings.TrimPrefix(short, ":")
	}
	for _, name := range []string{v.Name, short} {
		rest, ok = strings.CutPrefix(text, name)
		if ok && (rest == "" || rest[0] == '.' || rest[0] == '[' || strings.HasPrefix(rest, "->")) {
			return rest, true
		}
	}
	return "", false
}

func (f *search) hasName(text string) bool {
	for i := range f.table.Variables {
		if _, ok := behindName(&f.table.Variables[i], text); ok {
			return true
		}
	}
	return false
}

// pick returns what a text stands for that begins with the name of a variable, of those wanted.
func (f *search) pick(text string, stars int,
	wanted func(*variables.Variable) bool) (list []*Asked) {
	for i := range f.table.Variables {
		v := &f.table.Variables[i]
		rest, ok := behindName(v, text)
		if !ok || !wanted(v) {
			continue
		}
		a, err := Whole(f.table, v).behind(rest, stars)
		var numbers []*Asked
		if err == nil {
			numbers = a.numbers(mostParts)
			switch n := len(numbers); {
			case n == 0:
				err = fmt.Errorf("%s is of a type that is not read, or only declared", a)
			case n > mostParts:
				err, numbers = fmt.Errorf("%s has more than %d numbers: name one of them", a,
					mostParts), nil
			}
		}
		if err != nil {
			f.err = err
		}
		list = append(list, numbers...)
	}
	return list
}

// behind is the part that a text behind a part stands for, or with stars before it.
func (a *Asked) behind(text string, stars int) (*Asked, error) {
	a, err := a.fieldsBehind(text)
	for ; stars > 0 && err == nil; stars-- {
		p := a.pointee()
		if p == nil {
			return nil, fmt.Errorf("%s is no pointer to what is known", a)
		}
		a = p
	}
	return a, err
}

// PartOf is the part of one of some variables that a text stands for, of the last that has the name
// which it begins with, behind stars. It is nil where none has.
func PartOf(list []*Asked, text string) (*Asked, error) {
	rest := strings.TrimLeft(text, "*")
	for _, a := range slices.Backward(list) {
		if behind, ok := behindName(a.Variable, rest); ok {
			return a.behind(behind, len(text)-len(rest))
		}
	}
	return nil, nil
}

// fieldsBehind is the part that a text stands for which begins behind a part: .FIELD, ->FIELD, [N],
// any number of them; "": it itself.
func (a *Asked) fieldsBehind(text string) (*Asked, error) {
	for text != "" {
		var next *Asked
		switch {
		case text[0] == '[':
			number, rest, ok := strings.Cut(text[1:], "]")
			n, err := strconv.ParseInt(number, 0, 32)
			if !ok || err != nil {
				return nil, fmt.Errorf("behind %s: [ wants a number and ]", a)
			}
			if next = a.element(n); next == nil {
				return nil, fmt.Errorf("%s has no element %d that is known", a, n)
			}
			text = rest
		default:
			rest := strings.TrimPrefix(strings.TrimPrefix(text, "->"), ".")
			end := strings.IndexAny(rest, ".[")
			if arrow := strings.Index(rest, "->"); arrow >= 0 && (end < 0 || arrow < end) {
				end = arrow
			}
			if end < 0 {
				end = len(rest)
			}
			from := a
			if a.Kind().Kind == variables.Pointer {
				if from = a.target(a.text + "->"); from == nil {
					return nil, fmt.Errorf("%s is no pointer to what is known", a)
				}
			}
			if next = from.field(rest[:end]); next == nil {
				return nil, fmt.Errorf("%s has no field %s%s", a, names.Printable(rest[:end]),
					from.fields())
			}
			text = rest[end:]
		}
		a = next
	}
	return a, nil
}

// fields lists some of a structure's fields, for who has asked for another.
func (a *Asked) fields() string {
	const most = 12
	var list []string
	for _, m := range a.Kind().Members {
		if m.Name != "" && !m.IsBase && len(list) < most {
			list = append(list, names.Printable(m.Name))
		}
	}
	if len(list) == 0 {
		return ""
	}
	return ": it has " + strings.Join(list, ", ")
}
