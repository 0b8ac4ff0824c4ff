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
)

// A Table is the variables of the images of a plan. It is safe for concurrent use.
type Table struct {
	log   *slog.Logger
	mutex sync.Mutex
	parts int // that were read
	first int // the number of the next part's first routine
	found []located.Variable
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
	if len(t.found) == 0 {
		return nil
	}
	return located.Section(t.found)
}

func (t *Table) addPart(part *plan.Part) error {
	im := part.Program.Image
	var ranges []owned
	for i, r := range part.Routines {
		if r.LeftOut == "" {
			for _, x := range r.Ranges {
				ranges = append(ranges, owned{x[0], x[1], t.first + i, r.Addr})
			}
		}
	}
	slices.SortFunc(ranges, func(a, b owned) int { return cmp.Compare(a.lo, b.lo) })
	list, err := im.Variables(func(code uint64) bool { return ownerOf(ranges, code) != nil })
	if err != nil {
		return err
	}
	lines, err := im.Lines()
	if err != nil {
		return err
	}
	for i := range list {
		t.add(im, lines, &list[i], ranges)
	}
	return nil
}

// owned is code of a routine.
type owned struct {
	lo, hi  uint64
	routine int
	entry   uint64 // of the routine
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

// add adds a variable with its places.
func (t *Table) add(im *image.Image, lines *image.Lines, from *image.Variable, ranges []owned) {
	v := located.Variable{Name: strings.ToValidUTF8(from.Name, "?"), Image: t.parts,
		Routine: located.Global, Size: from.Size, Type: located.Type(from.Kind)}
	body := uint64(0)
	for _, x := range from.Locations {
		if !from.IsGlobal && v.Routine == located.Global {
			owner := ownerOf(ranges, x.Lo)
			if owner == nil {
				continue
			}
			v.Routine, body = owner.routine, lines.BodyAt(owner.entry)
		}
		if x.IsWhole && parse(x.Expression).isFramed && x.Lo < body && body < x.Hi {
			x.Lo = body // arguments are put into the frame before it
		}
		v.Places = appendPlaces(v.Places, im, from.Frame, x)
	}
	if from.IsGlobal || v.Routine >= 0 {
		t.found = append(t.found, v)
	}
}

// appendPlaces appends what a location says: where it is relative to the frame, a place for each
// row of the unwind table.
func appendPlaces(list []located.Place, im *image.Image, frame []byte,
	x image.Location) []located.Place {
	e := parse(x.Expression)
	if e.isFramed {
		f := parse(frame)
		switch {
		case f.isCFA:
			return appendFramed(list, im, e, x)
		case f.Where == located.Register: // it has the address that the frame is
			e.Base = f.Base
		default:
			e.Where = located.NotKnown
		}
	}
	if e.isCFA {
		e.Where = located.NotKnown
	}
	return append(list, e.at(x.Lo, x.Hi))
}

// appendFramed appends a place for each row of the unwind table.
func appendFramed(list []located.Place, im *image.Image, e expression,
	x image.Location) []located.Place {
	first, _ := slices.BinarySearchFunc(im.Ranges, x.Lo,
		func(r image.Range, code uint64) int { return cmp.Compare(r.Hi, code+1) })
	for i := first; i < len(im.Ranges) && im.Ranges[i].Lo < x.Hi; i++ {
		r := &im.Ranges[i]
		rows := r.AppendRows(nil)
		for k, row := range rows {
			hi := r.Hi
			if k+1 < len(rows) {
				hi = rows[k+1].PC
			}
			lo, hi := max(x.Lo, row.PC), min(x.Hi, hi)
			if lo >= hi {
				continue
			}
			p := e
			if row.CFA.Reg >= 0 && int(row.CFA.Reg) < len(general) {
				p.Base = general[row.CFA.Reg] + 1
				p.Offset += int64(row.CFA.Off)
			} else {
				p.Where = located.NotKnown
			}
			list = append(list, p.at(lo, hi))
		}
	}
	return list
}

// at is the place of an expression in some code.
func (e expression) at(lo, hi uint64) located.Place {
	p := e.Place
	if p.Where == located.NotKnown {
		p = located.Place{}
	}
	p.Lo, p.Hi = lo, hi
	return p
}
