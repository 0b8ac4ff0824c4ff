package profile

import (
	"cmp"
	"fmt"
	"slices"

	"wpptrace/compress/wpp"
	"wpptrace/internal/saturating"
	"wpptrace/query"
	"wpptrace/query/names"
)

// instructionCounts are how often each instruction ran of the routines that the trace has met: by
// routine, block and place in the block. They take 8 bytes an instruction.
type instructionCounts map[int][][]uint64

// countInstructions takes time in proportion to the instructions of all paths of the alphabet.
func countInstructions(s *wpp.Snapshot, paths *query.Frequencies) instructionCounts {
	all := instructionCounts{}
	for i := range s.Routines {
		blocks := s.Routines[i].Blocks
		for b := range blocks {
			all[i] = append(all[i], make([]uint64, len(blocks[b].Lengths)))
		}
	}
	for sym := range s.Symbols {
		p, n := &s.Symbols[sym], paths.Symbol(uint32(sym))
		if p.IsMark || n == 0 {
			continue
		}
		at := 0
		for piece := range s.Pieces(uint32(sym)) { // one for each block
			counts := all[p.Routine][p.Blocks[at]]
			for k := piece.From; k < piece.To; k++ {
				counts[k] = saturating.Add(counts[k], n)
			}
			at++
		}
	}
	return all
}

// An Instruction is one of a routine, with how often it ran.
type Instruction struct {
	Addr  uint64 // link-time
	Len   int    // in bytes
	Count uint64
	Leads bool // it is a block's first
	// the place in the source, of inlined code in the routine that it is of: File is an index in
	// Snapshot.Files
	File, Line int // Line 0: it is not known
	Call       int // the number of the innermost inlined call; 0: it is in none
}

// A Listing is the instructions of a routine.
type Listing struct {
	Routine      int           // index in Snapshot.Routines
	Calls        uint64        // activations whose beginning was seen
	Instructions []Instruction // by rising address, each once
}

// Listings returns how often each instruction ran of the routines of a name, ROUTINE or ROUTINE()
// as in names.Names.Select, in the threads with these ids, or in all. A snapshot has the
// instructions of those routines that ran: it fails where none of them did, and where there is no
// such routine or thread. It takes time in proportion to the grammars and to the instructions of
// all paths of the alphabet.
func Listings(s *wpp.Snapshot, name string, tids ...int) (list []Listing, err error) {
	defer wpp.Recover(&err)
	paths, err := query.NewFrequencies(s, tids...)
	if err != nil {
		return nil, err
	}
	fail := func(err error) error {
		return fmt.Errorf("instructions of %s: %w", names.Printable(name), err)
	}
	routines, err := names.Of(s).Routines(name)
	if err != nil {
		return nil, fail(err)
	}
	flat, err := Flat(s, tids...)
	if err != nil {
		return nil, err
	}
	counts := countInstructions(s, paths)
	for _, i := range routines {
		if len(s.Routines[i].Blocks) == 0 {
			continue
		}
		l := Listing{Routine: i, Instructions: instructionsOf(s, i, counts[i])}
		if at := slices.IndexFunc(flat.Routines,
			func(x RoutineFigures) bool { return x.Routine == i }); at >= 0 {
			l.Calls = flat.Routines[at].Calls
		}
		list = append(list, l)
	}
	if list == nil {
		if why := s.Routines[routines[0]].LeftOut; why != "" {
			return nil, fail(fmt.Errorf("it was not traced (%s)", names.Printable(why)))
		}
		return nil, fail(fmt.Errorf("it did not run, and the snapshot has the instructions of " +
			"routines that ran"))
	}
	return list, nil
}

func instructionsOf(s *wpp.Snapshot, routine int, counts [][]uint64) (list []Instruction) {
	blocks := s.Routines[routine].Blocks
	for b := range blocks {
		block := &blocks[b]
		addr, at := block.Addr, 0
		for span := range (wpp.Piece{Block: block, To: len(block.Lengths)}).Lines() {
			for ; at < span.To; at++ {
				list = append(list, Instruction{addr, int(block.Lengths[at]), counts[b][at],
					at == 0, span.File, lineOf(s, span, at), span.Call})
				addr += uint64(block.Lengths[at])
			}
		}
	}
	slices.SortStableFunc(list, func(a, b Instruction) int { return cmp.Compare(a.Addr, b.Addr) })
	return slices.CompactFunc(list, func(a, b Instruction) bool { return a.Addr == b.Addr })
}

// lineOf is the line of an instruction of a span.
func lineOf(s *wpp.Snapshot, span wpp.Span, at int) int {
	switch {
	case s.EachLine || at == span.From:
		return span.Line
	case at == span.To-1 && span.Last > span.Line:
		return span.Last
	}
	return 0
}
