package image

import (
	"cmp"
	"debug/dwarf"
	"errors"
	"fmt"
	"sync"
)

// A Call is one in whose place the compiler has put the code of the routine that is called.
type Call struct {
	Routine string // that is called, demangled; "" where it is not known
	File    string // of the call
	Line    int    // of the call; 0: neither is known
}

// Inlined returns the calls that the code at addr is inlined for, the innermost first: At gives the
// place in the first one's routine, each call its place in the next one's, and the last one that in
// the routine which has the code. The first address of a unit has its entries read, about 0.3 s for
// 10 MB of debug information; then it takes about a microsecond. Where that fails there are no
// calls: see Trouble.
func (l *Lines) Inlined(addr uint64) []Call { return l.inlined.at(addr) }

// Release gives back the memory that debug information takes. Inlined reads it again when it is
// asked about a unit that it does not know.
func (l *Lines) Release() {
	l.inlined.mutex.Lock()
	defer l.inlined.mutex.Unlock()
	l.inlined.debug = nil
}

// Trouble returns the first reason why Inlined did not return all; nil: there was none.
func (l *Lines) Trouble() error {
	l.inlined.mutex.Lock()
	defer l.inlined.mutex.Unlock()
	return l.inlined.trouble
}

// inlinedCalls are those of a file. What is known of a unit is read when one of its addresses is
// asked for.
type inlinedCalls struct {
	image *Image
	code  []ownedFrom // by index in units

	mutex   sync.Mutex
	debug   *debugData // nil: it is to be read again
	left    *debugRoom
	units   []inlineUnit
	calls   []inlinedCall
	names   map[naming]string
	trouble error
}

type inlineUnit struct {
	first dwarf.Offset // entry
	read  bool
	code  []ownedFrom // by index in calls
}

type inlinedCall struct {
	callee naming
	file   string
	line   int
	in     int // the call that it is in: index in calls, or nowhere
	depth  int // how many it is in
}

// A naming is an entry that names a routine.
type naming struct {
	entry  dwarf.Offset
	shared bool // of the supplement
}

func (c *inlinedCalls) at(addr uint64) (stack []Call) {
	unit := ownerOf(c.code, addr)
	if unit == nowhere {
		return nil
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	u := &c.units[unit]
	c.know(u)
	for i := ownerOf(u.code, addr); i != nowhere; i = c.calls[i].in {
		x := &c.calls[i]
		stack = append(stack, Call{c.name(x.callee), x.file, x.line})
	}
	return stack
}

// know reads a unit, if it has not been read.
func (c *inlinedCalls) know(u *inlineUnit) {
	if !u.read {
		u.read = true
		c.note(c.read(func() error { return c.readUnit(u) }))
	}
}

// note keeps the first reason.
func (c *inlinedCalls) note(err error) {
	if c.trouble == nil && err != nil {
		c.trouble = fmt.Errorf("read inlined calls of %s: %w", c.image.Name, err)
	}
}

// read has debug information in memory while a function reads it, and makes errors of the panics of
// debug/dwarf on some hostile files.
func (c *inlinedCalls) read(what func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("malformed debug information: %v", p)
		}
	}()
	if c.debug == nil {
		if err := c.image.withDebug(c.open); err != nil {
			return err
		}
	}
	return what()
}

// open reads debug information again. What it lacks has been noted the first time.
func (c *inlinedCalls) open(f elfFile) error {
	d, err := f.openDWARF()
	if err != nil {
		return err
	}
	_ = f.openSupplement(d)
	c.debug, d.left = d, c.left
	return nil
}

func (c *inlinedCalls) name(at naming) string {
	name, ok := c.names[at]
	if !ok {
		c.note(c.read(func() (err error) { name, err = c.debug.routineName(at); return err }))
		c.names[at] = name
	}
	return name
}

// routineName is the name of the routine that an entry is of, demangled: its own, or that of the
// entry that it refers to. One without a linkage name, as C++ has for what other units cannot call,
// is qualified by the scopes around it.
func (d *debugData) routineName(at naming) (string, error) { return d.nameOf(at, 0) }

// nameOf is the name of a routine, or of a scope of other names, which depth others are in.
func (d *debugData) nameOf(at naming, depth int) (string, error) {
	const mipsLinkageName = dwarf.Attr(0x2007) // before DWARF 4
	const most = 8                             // entries that refer to each other
	plain, external := "", false
	from := d
	for range most {
		if at.shared {
			from = d.supplement
		}
		if from == nil {
			return "", errors.New("names are in another file, which it does not name")
		}
		_, e, err := from.entryAt(at.entry)
		if err != nil || e == nil {
			return plain, err
		}
		for _, attribute := range []dwarf.Attr{dwarf.AttrLinkageName, mipsLinkageName} {
			name, _ := e.Val(attribute).(string)
			switch {
			case name == "" || qualifiesMembers(e.Tag):
			case depth > 0: // local classes are within it, whose names have its parameters
				return demangled(name), nil
			default:
				return Demangle(name), nil
			}
		}
		name, _ := e.Val(dwarf.AttrName).(string)
		plain = cmp.Or(plain, name)
		isExternal, _ := e.Val(dwarf.AttrExternal).(bool)
		external = external || isExternal
		next, ok := referred(e, at.shared)
		if !ok {
			if plain == "" && e.Tag == dwarf.TagNamespace {
				plain = "(anonymous namespace)"
			}
			if plain == "" {
				return "", nil
			}
			return from.qualified(plain, at.entry, external, depth)
		}
		at = next
	}
	return plain, nil
}

// referred is the entry that one refers to for what it does not say itself.
func referred(e *dwarf.Entry, shared bool) (naming, bool) {
	for _, attribute := range []dwarf.Attr{dwarf.AttrAbstractOrigin, dwarf.AttrSpecification} {
		field := e.AttrField(attribute)
		if field == nil {
			continue
		}
		if at, ok := field.Val.(dwarf.Offset); ok {
			return naming{at, shared}, true
		}
		if at, ok := field.Val.(int64); ok && field.Class == dwarf.ClassReferenceAlt {
			return naming{dwarf.Offset(at), true}, true
		}
	}
	return naming{}, false
}

// readUnit finds the inlined calls of a unit.
func (c *inlinedCalls) readUnit(u *inlineUnit) error {
	r, unit, err := c.debug.entryAt(u.first)
	if err != nil {
		return err
	}
	w := callWalk{inlinedCalls: c, stack: []int{nowhere}}
	if lines, err := c.debug.data.LineReader(unit); err != nil {
		return err
	} else if lines != nil {
		w.files = lines.Files()
	}
	for len(w.stack) > 0 {
		e, err := c.debug.entry(r)
		if err != nil {
			return err
		}
		if e == nil || e.Tag == dwarf.TagCompileUnit || e.Tag == dwarf.TagPartialUnit ||
			e.Tag == dwarf.TagTypeUnit {
			break // of the next unit, of this one the end is missing
		}
		if err := w.step(r, e); err != nil {
			return err
		}
	}
	u.code = flatten(w.code)
	return nil
}

// A callWalk goes over the entries of a unit.
type callWalk struct {
	*inlinedCalls
	files []*dwarf.LineFile
	stack []int // of entries around: the call that their code is inlined for, or nowhere
	code  []owned
}

func (w *callWalk) step(r *dwarf.Reader, e *dwarf.Entry) error {
	call := w.stack[len(w.stack)-1]
	switch e.Tag {
	case 0:
		w.stack = w.stack[:len(w.stack)-1]
		return nil
	case dwarf.TagSubprogram: // also one within another
		call = nowhere
		if !hasCode(e) {
			r.SkipChildren()
			return nil
		}
	case dwarf.TagInlinedSubroutine:
		var err error
		if call, err = w.inlined(e, call); err != nil {
			return err
		}
	}
	if e.Children {
		w.stack = append(w.stack, call)
	}
	return nil
}

func hasCode(e *dwarf.Entry) bool {
	return e.AttrField(dwarf.AttrLowpc) != nil || e.AttrField(dwarf.AttrRanges) != nil
}

// inlined adds a call that is within another one. What is too deep counts as that one's.
func (w *callWalk) inlined(e *dwarf.Entry, in int) (call int, err error) {
	x := inlinedCall{callee: naming{entry: e.Offset}, in: in}
	if in != nowhere {
		x.depth = w.calls[in].depth + 1
	}
	if x.depth >= maxCallDepth {
		return in, nil
	}
	list, err := w.debug.rangesOf(e)
	if err != nil {
		return nowhere, err
	}
	if len(w.calls) >= maxCalls {
		return nowhere, fmt.Errorf("more than %d inlined calls", maxCalls)
	}
	file, _ := e.Val(dwarf.AttrCallFile).(int64)
	line, _ := e.Val(dwarf.AttrCallLine).(int64)
	if file >= 0 && file < int64(len(w.files)) && w.files[file] != nil && line > 0 {
		x.file, x.line = w.files[file].Name, int(min(line, maxLine))
	}
	call = len(w.calls)
	w.calls = append(w.calls, x)
	w.code = w.image.own(w.code, list, call, x.depth)
	return call, nil
}
