package wet

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"wpptrace/compress/wet/streams"
)

// A field is what a number in a log says.
type field uint8

// The fields. They are stored in files.
const (
	// how many things of a kind there are of which nothing is said, before the next of which
	// something is; of no instruction
	entryRun field = iota
	recoveryRun
	resultRun
	loadRun

	entryBits
	entryRegisters
	entryFlags
	entryFS
	recoveryRegisters
	recoveryConfirmed
	loadCode
	resultRegisters

	entryValue    field = 16 // and 15 more, by register
	recoveryValue field = 32 // and 15 more
	loadWord      field = 48 // and 7 more, of 8 bytes each
	resultValue   field = 56 // and 15 more
	usedValue     field = 72 // and 15 more
	fields        field = 88
)

// A cell is where numbers belong that are alike: an instruction, and what they say there.
type cell struct {
	routine, block, insn int
	field                field
}

func cellOf(at Place, f field) cell { return cell{at.Routine, at.Block, at.Insn, f} }

func (c cell) compare(d cell) int {
	return cmp.Or(cmp.Compare(c.routine, d.routine), cmp.Compare(c.block, d.block),
		cmp.Compare(c.insn, d.insn), cmp.Compare(c.field, d.field))
}

// A sheet has a stream of numbers for each cell: those of one instruction predict one another.
type sheet struct {
	of     map[cell]int // index in streams
	values [][]uint64
	said   []said // may still be taken back
	room   uint64 // numbers that values have room for
}

type said struct {
	in     cell
	number uint64
}

func (s *sheet) say(in cell, number uint64) { s.said = append(s.said, said{in, number}) }

// keep has what was said stay.
func (s *sheet) keep() {
	if s.of == nil {
		s.of = map[cell]int{}
	}
	for _, x := range s.said {
		i, ok := s.of[x.in]
		if !ok {
			i = len(s.values)
			s.of[x.in] = i
			s.values = append(s.values, nil)
		}
		before := cap(s.values[i])
		s.values[i] = append(s.values[i], x.number)
		s.room += uint64(cap(s.values[i]) - before)
	}
	s.said = s.said[:0]
}

// takeBack forgets what was said since keep.
func (s *sheet) takeBack() { s.said = s.said[:0] }

// clone returns a copy that shares the numbers that stay.
func (s *sheet) clone() sheet {
	c := sheet{of: maps.Clone(s.of), values: slices.Clone(s.values), said: slices.Clone(s.said),
		room: s.room}
	for i, v := range c.values {
		c.values[i] = slices.Clip(v)
	}
	return c
}

// bytes is how much memory it takes.
func (s *sheet) bytes() uint64 {
	return 8*s.room + 128*uint64(len(s.values)) + 48*uint64(cap(s.said))
}

// columns is how many streams say what the others are of.
const columns = 4

// Sheets of more numbers than partNumbers are in as many parts, up to mostParts, which are read at
// the same time.
const (
	partNumbers = 1 << 14
	mostParts   = 4
)

// append appends what stays, by cell.
func (s *sheet) append(b []byte) []byte {
	numbers := 0
	for _, v := range s.values {
		numbers += len(v)
	}
	parts := min(numbers/partNumbers+1, mostParts)
	b = binary.AppendUvarint(b, uint64(parts))
	cells, before := slices.SortedFunc(maps.Keys(s.of), cell.compare), 0
	for part := range parts {
		n := 0
		for ; n < len(cells) && (before <= numbers*(part+1)/parts || part == parts-1); n++ {
			before += len(s.values[s.of[cells[n]]])
		}
		coded := s.code(cells[:n])
		b = append(binary.AppendUvarint(b, uint64(len(coded))), coded...)
		cells = cells[n:]
	}
	return b
}

// code codes the numbers of some cells.
func (s *sheet) code(cells []cell) []byte {
	set := make([][]uint64, columns, columns+len(cells))
	for _, c := range cells {
		for i, v := range [columns]int{c.routine, c.block, c.insn, int(c.field)} {
			set[i] = append(set[i], uint64(v))
		}
		set = append(set, s.values[s.of[c]])
	}
	return streams.Append(nil, set...)
}

// mostNumbers bounds how many numbers a segment may have, and by that the memory that a damaged one
// takes. Its instructions have far fewer; how many a byte has says nothing, as what repeats takes
// next to none.
const mostNumbers = 1 << 25

// A reading is a sheet that is read.
type reading struct {
	of  map[cell]*streams.Cursor
	err error
}

func readSheet(r *reader) reading {
	sets := make([][]*streams.Cursor, r.count(mostParts, "parts"))
	errs := make([]error, len(sets))
	var opening sync.WaitGroup
	for i := range sets {
		n := r.count(len(r.rest), "bytes")
		coded := r.take(n)
		opening.Go(func() {
			sets[i], errs[i] = streams.Open(coded, mostNumbers/mostParts)
		})
	}
	opening.Wait()
	if err := cmp.Or(r.err, cmp.Or(errs...)); err != nil {
		return reading{err: err}
	}
	x := reading{of: map[cell]*streams.Cursor{}}
	for _, set := range sets {
		if err := x.add(set); err != nil {
			return reading{err: err}
		}
	}
	return x
}

// add adds a part of the sheet.
func (x *reading) add(set []*streams.Cursor) error {
	if len(set) < columns {
		return errors.New("it has no columns")
	}
	for _, column := range set[:columns] {
		if column.Len() != uint64(len(set)-columns) {
			return fmt.Errorf("it has columns of %d numbers for %d streams", column.Len(),
				len(set)-columns)
		}
	}
	for _, s := range set[columns:] {
		var of [columns]uint64
		for i, column := range set[:columns] {
			of[i], _ = column.Next()
		}
		c := cell{int(of[0]), int(of[1]), int(of[2]), field(of[3])}
		if of[3] >= uint64(fields) || x.of[c] != nil {
			return fmt.Errorf("it has a stream of field %d, or twice", of[3])
		}
		x.of[c] = s
	}
	return nil
}

// has reports whether there is a next number.
func (x *reading) has(in cell) bool {
	s := x.of[in]
	return s != nil && s.Position() < s.Len()
}

// number returns the next number, 0 once something was wrong.
func (x *reading) number(in cell) uint64 {
	s := x.of[in]
	if s == nil {
		x.fail("it says nothing of what it should")
		return 0
	}
	v, ok := s.Next()
	if !ok {
		x.fail("it says less than it should")
	}
	return v
}

func (x *reading) fail(format string, args ...any) {
	if x.err == nil {
		x.err = fmt.Errorf(format, args...)
	}
}
