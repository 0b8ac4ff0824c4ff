package variables

import (
	"cmp"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"wpptrace/compress/wpp"
	located "wpptrace/compress/wpp/variables"
	"wpptrace/loader/image"
	"wpptrace/loader/plan"
	described "wpptrace/loader/variables"
)

// A Table is the variables of the images of a plan. It is safe for concurrent use.
type Table struct {
	log   *slog.Logger
	mutex sync.Mutex
	parts int // that were read
	first int // the number of the next part's first routine
	found located.Table
}

// NewTable returns a table that has read nothing yet, and logs what it cannot read.
func NewTable(log *slog.Logger) *Table { return &Table{log: log} }

// Section returns the section of the variables of the parts of a plan, which it had as its first
// before; nil: none is known. Debug information is read once, some 0.3 s for 10 MB of it.
func (t *Table) Section(parts []plan.Part) *wpp.Section {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	for ; t.parts < len(parts); t.parts++ {
		part := &parts[t.parts]
		if err := t.addPart(part); err != nil && !errors.Is(err, image.ErrNoLines) {
			t.log.Warn("the snapshot does not have all variables", "why", err)
		}
		t.first += len(part.Routines)
	}
	if len(t.found.Variables) == 0 {
		return nil
	}
	return located.Section(&t.found)
}

func (t *Table) addPart(part *plan.Part) error {
	im := part.Program.Image
	var ranges []owned
	for i, r := range part.Routines {
		if r.LeftOut == "" {
			for _, x := range r.Ranges {
				ranges = append(ranges, owned{x[0], x[1], t.first + i})
			}
		}
	}
	slices.SortFunc(ranges, func(a, b owned) int { return cmp.Compare(a.lo, b.lo) })
	from, err := described.Of(im, func(code uint64) bool { return ownerOf(ranges, code) != nil })
	if err != nil {
		return err
	}
	types := t.addTypes(from.Types)
	for i := range from.Variables {
		t.add(&from.Variables[i], types, ranges)
	}
	return nil
}

// owned is code of a routine.
type owned struct {
	lo, hi  uint64
	routine int
}

// ownerOf is that of some ranges, by address, which has an address; nil: none has.
func ownerOf(ranges []owned, code uint64) *owned {
	i, found := slices.BinarySearchFunc(ranges, code,
		func(r owned, code uint64) int { return cmp.Compare(r.lo, code) })
	if !found {
		i--
	}
	if i < 0 || code >= ranges[i].hi {
		return nil
	}
	return &ranges[i]
}

// add adds a variable with its places. types are the indices of its types in the table.
func (t *Table) add(from *described.Variable, types []int, ranges []owned) {
	v := located.Variable{Name: strings.ToValidUTF8(from.Name, "?"),
		Line: from.Line, Inlined: strings.ToValidUTF8(from.Inlined, "?"), Image: t.parts,
		Routine: located.Global, Type: types[from.Type]}
	for _, x := range from.Locations {
		if !from.IsGlobal && v.Routine == located.Global {
			owner := ownerOf(ranges, x.Lo)
			if owner == nil {
				continue
			}
			v.Routine = owner.routine
		}
		v.Places = append(v.Places, located.Place{Lo: x.Lo, Hi: x.Hi, Expression: x.Expression})
	}
	if from.IsGlobal || v.Routine >= 0 {
		t.found.Variables = append(t.found.Variables, v)
	}
}
