package merge

import (
	"encoding/binary"

	"wpptrace/compress/wpp"
)

// A routine is what is known of the paths of one.
type routine struct {
	// of the snapshot that is being added: the merged routine's blocks, by its own
	blocks []int

	whole    map[uint64]uint32   // by number: the symbol
	keyOf    map[uint64]string   // by number: what it runs
	numbers  map[string][]uint64 // that run it
	partial  map[string]uint32   // by what it runs: the symbol
	partials uint64              // how many there are
}

func newRoutine() *routine {
	return &routine{whole: map[uint64]uint32{}, keyOf: map[uint64]string{},
		numbers: map[string][]uint64{}, partial: map[string]uint32{}}
}

// keyOf is what a path runs: where it begins and ends, and the blocks by their numbers in the
// merged routine. Of a path without blocks, as traces have them, all that is known is its number.
func keyOf(p *wpp.Symbol, blocks []int, hasBlocks bool) string {
	key := []byte{byte(p.Start), byte(p.End)}
	key = binary.AppendUvarint(key, uint64(p.Skip))
	key = binary.AppendUvarint(key, uint64(p.Cut))
	for _, b := range blocks {
		key = binary.AppendUvarint(key, uint64(b))
	}
	if !hasBlocks {
		key = binary.AppendUvarint(append(key, 0xff), p.Path)
	}
	return string(key)
}

// A part is the paths of a routine that a snapshot has.
type part struct {
	symbols []int    // of the snapshot
	keys    []string // of these
	blocks  [][]int  // of these
}

// addSymbols returns, for each symbol of a snapshot, the one that it is.
func (m *Merger) addSymbols(s *wpp.Snapshot, routines []int) (list []uint32, err error) {
	list = make([]uint32, len(s.Symbols))
	parts := make([]part, len(s.Routines))
	for i := range s.Symbols {
		p := &s.Symbols[i]
		if p.IsMark {
			list[i] = m.mark(p)
			continue
		}
		x := &parts[p.Routine]
		var blocks []int
		for _, b := range p.Blocks {
			blocks = append(blocks, m.routines[routines[p.Routine]].blocks[b])
		}
		x.symbols = append(x.symbols, i)
		x.keys = append(x.keys, keyOf(p, blocks, len(s.Routines[p.Routine].Blocks) > 0))
		x.blocks = append(x.blocks, blocks)
	}
	for i := range parts {
		if err := m.addPart(s, i, routines[i], &parts[i], list); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// mark is the symbol of a mark. It is counted by its kind alone.
func (m *Merger) mark(p *wpp.Symbol) uint32 {
	sym, known := m.marks[p.Mark]
	if !known {
		sym = m.add(wpp.Symbol{IsMark: true, Mark: p.Mark})
		m.marks[p.Mark] = sym
	}
	return sym
}

func (m *Merger) add(p wpp.Symbol) uint32 {
	m.made.Symbols, m.counts.Of = append(m.made.Symbols, p), append(m.counts.Of, 0)
	return uint32(len(m.made.Symbols) - 1)
}

// addPart adds the paths of a routine. Those that are whole have the number of the files before, by
// which they are known, if the routine is numbered as it is there; else they must have come up
// there, and are known by what they run.
func (m *Merger) addPart(s *wpp.Snapshot, routine, at int, x *part, list []uint32) error {
	from, to, known := &s.Routines[routine], &m.made.Routines[at], m.routines[at]
	isSame := known.isNumberedSo(s, from, to, x)
	if to.Paths == 0 {
		to.Paths = from.Paths
	}
	for i, sym := range x.symbols {
		p := s.Symbols[sym]
		p.Routine, p.Blocks = at, x.blocks[i]
		switch {
		case p.Path >= from.Paths:
			p.Path = to.Paths + known.partials
			list[sym] = m.partial(known, p, x.keys[i])
		case isSame:
			list[sym] = m.whole(known, p, x.keys[i])
		default:
			numbers := known.numbers[x.keys[i]]
			if len(numbers) != 1 {
				return m.otherwise(s, from, "numbers its paths otherwise")
			}
			list[sym] = known.whole[numbers[0]]
		}
	}
	return nil
}

// isNumberedSo reports whether a snapshot numbers the paths of a routine as the merged ones: there
// are as many, and what both have is the same path. A number for what has another one already is
// another numbering, unless the snapshot has both: there are ways between the same blocks that are
// two.
func (r *routine) isNumberedSo(s *wpp.Snapshot, from, to *wpp.Routine, x *part) bool {
	if to.Paths != 0 && from.Paths != to.Paths {
		return false
	}
	has := map[uint64]bool{}
	for _, sym := range x.symbols {
		has[s.Symbols[sym].Path] = true
	}
	for i, sym := range x.symbols {
		number := s.Symbols[sym].Path
		if number >= from.Paths {
			continue
		}
		if key, known := r.keyOf[number]; known {
			if key != x.keys[i] {
				return false
			}
			continue
		}
		for _, other := range r.numbers[x.keys[i]] {
			if !has[other] {
				return false
			}
		}
	}
	return true
}

func (m *Merger) whole(r *routine, p wpp.Symbol, key string) uint32 {
	sym, known := r.whole[p.Path]
	if !known {
		sym = m.add(p)
		r.whole[p.Path], r.keyOf[p.Path] = sym, key
		r.numbers[key] = append(r.numbers[key], p.Path)
	}
	return sym
}

// partial is the symbol of a partial path: its number is each snapshot's own.
func (m *Merger) partial(r *routine, p wpp.Symbol, key string) uint32 {
	sym, known := r.partial[key]
	if !known {
		sym = m.add(p)
		r.partial[key] = sym
		r.partials++
	}
	return sym
}
