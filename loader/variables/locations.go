package variables

import (
	"cmp"
	"debug/dwarf"
	"fmt"
	"io"
	"math"
	"slices"

	"wpptrace/internal/location"
	"wpptrace/loader/image"
)

// list reads a location list; false: it has what is not known here, or is damaged.
func (w *walk) list(f *dwarf.Field) (list []Location, ok bool) {
	at, _ := f.Val.(int64)
	u := &w.about
	if f.Class == dwarf.ClassLocList { // an index of offsets
		const size = 4
		index, isIndex := f.Val.(uint64)
		if !isIndex || u.lists < 0 || index > uint64(len(w.lists[1])/size) {
			return nil, false
		}
		c := from(w.lists[1], u.lists+int64(index)*size)
		if at = u.lists + c.Fixed(size); c.Failed {
			return nil, false
		}
	}
	data, next := w.lists[0], w.olderLocation
	if u.isNew {
		data, next = w.lists[1], w.newerLocation
	}
	if at < 0 || at >= int64(len(data)) {
		return nil, false
	}
	c := from(data, at)
	for base := u.base; len(list) < w.left; {
		x, kind := next(&c, &base)
		switch {
		case kind == badLocation || c.Failed:
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

// from reads what begins at a place.
func from(data []byte, at int64) location.Reader {
	r := location.Reader{Rest: data}
	r.Take(int(at))
	return r
}

// olderLocation reads an entry of a list of DWARF 2 to 4 (DWARF 4, section 2.6.2).
func (w *walk) olderLocation(c *location.Reader, base *uint64) (x Location, kind int) {
	lo, hi := uint64(c.Fixed(8)), uint64(c.Fixed(8))
	switch {
	case lo == 0 && hi == 0:
		return x, noLocation
	case lo == math.MaxUint64:
		*base = hi
		return x, newBase
	}
	return Location{Lo: *base + lo, Hi: *base + hi, Expression: c.Take(int(c.Fixed(2)))}, aLocation
}

// newerLocation reads an entry of a list (DWARF 5, section 7.7.3).
func (w *walk) newerLocation(c *location.Reader, base *uint64) (x Location, kind int) {
	const end, baseIndex, startEndIndex, startLengthIndex, offsets = 0, 1, 2, 3, 4
	const address, startEnd, startLength = 6, 7, 8
	indexed := func() uint64 {
		addr, ok := w.address(c.Unsigned())
		c.Failed = c.Failed || !ok
		return addr
	}
	switch c.Fixed(1) {
	case end:
		return x, noLocation
	case baseIndex:
		*base = indexed()
		return x, newBase
	case address:
		*base = uint64(c.Fixed(8))
		return x, newBase
	case offsets:
		x.Lo, x.Hi = *base+uint64(c.Unsigned()), *base+uint64(c.Unsigned())
	case startEndIndex:
		x.Lo, x.Hi = indexed(), indexed()
	case startLengthIndex:
		x.Lo = indexed()
		x.Hi = x.Lo + uint64(c.Unsigned())
	case startEnd:
		x.Lo, x.Hi = uint64(c.Fixed(8)), uint64(c.Fixed(8))
	case startLength:
		x.Lo = uint64(c.Fixed(8))
		x.Hi = x.Lo + uint64(c.Unsigned())
	default:
		return x, badLocation
	}
	x.Expression = c.Take(int(c.Unsigned()))
	return x, aLocation
}

// address is one of the unit's, by its number.
func (w *walk) address(number int64) (addr uint64, ok bool) {
	const size = 8
	if w.about.addresses < 0 || number < 0 || number > int64(len(w.lists[2])/size) {
		return 0, false
	}
	c := from(w.lists[2], w.about.addresses+number*size)
	addr = uint64(c.Fixed(size))
	return addr, !c.Failed
}

// constantExpression is that of a variable which has always the same value; nil: it is not known.
func constantExpression(value any) []byte {
	switch x := value.(type) {
	case int64:
		return append(location.AppendNumber(nil, x), location.StackValue)
	case []byte:
		const most = 127 // so that its length takes a byte
		if len(x) <= most {
			return append([]byte{location.ImplicitValue, byte(len(x))}, x...)
		}
	}
	return nil
}

// rewriteAll makes expressions ones that have a meaning of their own: what is relative to a frame
// is so to a register, and has a location for each row of the unwind table. isWhole: they are of a
// variable that is in one place in all of its scope, also where its frame does not stand yet.
func (w *walk) rewriteAll(list []Location, r *routine,
	isWhole bool) (made []Location) {
	for _, x := range list {
		e := relationOf(x.Expression, r)
		if isWhole && e.isFramed && x.Lo < r.body && r.body < x.Hi {
			x.Lo = r.body // arguments are put into the frame before it
		}
		if !e.ok || !e.isByCFA && !e.isByFrame {
			x.Expression = nil
			if e.ok {
				x.Expression = w.rewrite(nil, e.code, r, image.CFA{})
			}
			made = append(made, x)
			continue
		}
		holds := func(image.CFA) bool { return true }
		if e.isByFrame {
			if r.stands == nil {
				r.stands = w.standing(r, e.frame)
			}
			holds = r.stands
		}
		w.frames.each(w.image, x.Lo, x.Hi, func(lo, hi uint64, cfa image.CFA) {
			if at := (Location{Lo: lo, Hi: hi}); holds(cfa) && len(made) <= w.left {
				at.Expression = w.rewrite(nil, e.code, r, cfa)
				made = append(made, at)
			}
		})
	}
	return made
}

// standing says of which rules for the frame's address the register that a routine's variables are
// relative to has what they are relative to: compilers describe it as if it had it everywhere.
func (w *walk) standing(r *routine, register int) func(image.CFA) bool {
	body, most := image.CFA{Reg: image.Undefined}, int32(0)
	for _, code := range r.ranges {
		w.frames.each(w.image, code[0], code[1], func(lo, hi uint64, cfa image.CFA) {
			if lo <= r.body && r.body < hi {
				body = cfa
			}
			if int(cfa.Reg) == register {
				most = max(most, cfa.Off)
			}
		})
	}
	return func(cfa image.CFA) bool {
		return cfa == body && int(cfa.Reg) == register && cfa.Off == most
	}
}

// A relation is what an expression is relative to, before it is made one of its own.
type relation struct {
	code      []byte
	ok        bool // each operation is known
	isFramed  bool // it is relative to the routine's frame
	isByCFA   bool // it follows from the canonical frame address
	isByFrame bool // it follows from the register that the routine's frame is relative to
	frame     int  // that register, or none
}

const none = -1

func relationOf(code []byte, r *routine) (e relation) {
	e = relation{code: code, ok: len(code) > 0, frame: none}
	frame, isCFA := location.Op{}, false
	if r != nil && len(r.frame) > 0 {
		op, rest, err := location.Next(r.frame)
		if err == nil && len(rest) == 0 {
			frame, isCFA = op, op.Code == location.CFA
		}
		if frame.Code == location.Reg0 && frame.Register < location.Generals {
			e.frame = frame.Register
		}
	}
	for len(code) > 0 && e.ok {
		op, rest, err := location.Next(code)
		e.ok = err == nil
		switch op.Code {
		case location.CFA:
			e.isByCFA = true
		case location.Fbreg:
			e.isFramed = true
			e.isByCFA = e.isByCFA || isCFA
			e.isByFrame = e.isByFrame || e.frame != none
			e.ok = e.ok && (isCFA || e.frame != none)
		case location.Breg0:
			e.isByFrame = e.isByFrame || op.Register == e.frame
		}
		code = rest
	}
	return e
}

// rewrite appends what an expression means where a rule for the canonical frame address holds; nil:
// it is not known.
func (w *walk) rewrite(to, code []byte, r *routine, cfa image.CFA) []byte {
	isTyped := false // what is on the stack has a type of its own, with its own arithmetic
	for len(code) > 0 {
		op, rest, err := location.Next(code)
		if err != nil {
			return nil
		}
		ends := op.Code == location.StackValue || op.Code == location.Piece
		if isTyped && !ends && op.Code != location.Convert {
			return nil
		}
		ok := true
		switch op.Code {
		case location.CFA:
			to, ok = appendCFA(to, cfa, 0)
		case location.Fbreg:
			to, ok = w.appendFrame(to, r, cfa, op.N)
		case location.Addrx:
			var addr uint64
			addr, ok = w.address(op.N)
			to = location.AppendAddress(to, addr)
		case location.Constx:
			var n uint64
			n, ok = w.address(op.N)
			to = location.AppendNumber(to, int64(n))
		case location.Convert:
			to, isTyped, ok = w.appendConverted(to, op.N)
		case location.Reg0:
			ok = op.Register < location.Generals || location.Vectors <= op.Register &&
				op.Register < location.Vectors+16
			to = append(to, code[:len(code)-len(rest)]...)
		case location.Breg0:
			ok = op.Register < location.Generals
			to = append(to, code[:len(code)-len(rest)]...)
		default:
			to = append(to, code[:len(code)-len(rest)]...)
		}
		if !ok {
			return nil
		}
		code = rest
	}
	return to
}

func appendCFA(to []byte, cfa image.CFA, n int64) (_ []byte, ok bool) {
	switch {
	case cfa.Reg == image.Slot:
		to = append(location.AppendBase(to, location.RBP, int64(cfa.Off)), location.Deref)
		return append(location.AppendNumber(to, n), location.Plus), true
	case cfa.Reg < 0 || int(cfa.Reg) >= location.Generals:
		return to, false
	}
	return location.AppendBase(to, int(cfa.Reg), int64(cfa.Off)+n), true
}

// appendFrame appends what is n above the frame of a routine, of which relationOf knows that it
// has one.
func (w *walk) appendFrame(to []byte, r *routine, cfa image.CFA,
	n int64) (_ []byte, ok bool) {
	op, _, err := location.Next(r.frame)
	switch {
	case err != nil:
		return to, false
	case op.Code == location.CFA:
		return appendCFA(to, cfa, n)
	}
	return location.AppendBase(to, op.Register, n), true
}

// appendConverted appends what makes a number one of a base type, by its place in the unit; 0: the
// type that addresses have.
func (w *walk) appendConverted(to []byte, at int64) (_ []byte, isTyped, ok bool) {
	if at == 0 {
		return to, false, true
	}
	_, e, err := w.debug.EntryAt(w.about.start + dwarf.Offset(at))
	if err != nil || e == nil || e.Tag != dwarf.TagBaseType {
		return to, false, false
	}
	size, _ := e.Val(dwarf.AttrByteSize).(int64)
	switch kind := baseType(e); kind {
	case Signed, SignedChar, Unsigned, Char, Bool:
		isSigned := kind == Signed || kind == SignedChar
		return location.AppendExtended(to, int(size), isSigned), true, true
	}
	return to, false, false
}

// A rowCache has the rows of the unwind table that were asked for last.
type rowCache struct {
	of   *image.Range
	rows []image.Row
	left int // rows that it may go through yet: none are known then
}

// each gives the rule for the canonical frame address in each part of some code to a function.
func (c *rowCache) each(im *image.Image, lo, hi uint64, to func(lo, hi uint64, cfa image.CFA)) {
	first, _ := slices.BinarySearchFunc(im.Ranges, lo,
		func(r image.Range, code uint64) int { return cmp.Compare(r.Hi, code+1) })
	for i := first; i < len(im.Ranges) && im.Ranges[i].Lo < hi; i++ {
		r := &im.Ranges[i]
		if c.of != r {
			c.of, c.rows = r, r.AppendRows(c.rows[:0])
		}
		if c.left -= len(c.rows); c.left < 0 {
			return
		}
		for k, row := range c.rows {
			end := r.Hi
			if k+1 < len(c.rows) {
				end = c.rows[k+1].PC
			}
			if from, end := max(lo, row.PC), min(hi, end); from < end {
				to(from, end, row.CFA)
			}
		}
	}
}

// bodies finds where the bodies of a unit's routines begin.
type bodies struct {
	unit   *dwarf.Entry
	isRead bool
	rows   []bodyRow // of the unit's line table, by address
	read   int       // rows, of all units
}

type bodyRow struct {
	addr uint64
	ends bool // what sets up the frame
}

// of is where the body begins of a routine that has some code: what is before it sets up its frame.
// Where no compiler says so it is where its second row of the line table begins, as for debuggers.
// It is where the code begins if there is none.
func (x *bodies) of(d *image.Debug, code [2]uint64) (uint64, error) {
	if !x.isRead {
		if err := x.readUnit(d); err != nil {
			return 0, err
		}
	}
	i, _ := slices.BinarySearchFunc(x.rows, code[0],
		func(r bodyRow, addr uint64) int { return cmp.Compare(r.addr, addr) })
	second := code[0]
	for ; i < len(x.rows) && x.rows[i].addr < code[1]; i++ {
		if x.rows[i].ends {
			return x.rows[i].addr, nil
		}
		if second == code[0] {
			second = x.rows[i].addr
		}
	}
	return second, nil
}

func (x *bodies) readUnit(d *image.Debug) error {
	x.isRead, x.rows = true, x.rows[:0]
	lines, err := d.Lines(x.unit)
	if err != nil || lines == nil {
		return err
	}
	var e dwarf.LineEntry
	for {
		err := lines.Next(&e)
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		if x.read++; x.read > maxRows {
			return fmt.Errorf("more than %d rows of lines", maxRows)
		}
		if !e.EndSequence {
			x.rows = append(x.rows, bodyRow{e.Address, e.PrologueEnd})
		}
	}
	slices.SortStableFunc(x.rows, func(a, b bodyRow) int { return cmp.Compare(a.addr, b.addr) })
	return nil
}
