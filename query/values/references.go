package values

import (
	"math"
	"slices"

	"wpptrace/compress/sequitur"
	"wpptrace/compress/wet"
	"wpptrace/compress/wet/machine"
	"wpptrace/compress/wpp"
	"wpptrace/query"
)

// A Reference is an address that instructions accessed.
type Reference struct {
	Addr          uint64      // in the process
	Size          int         // of the largest access that begins there
	Reads, Writes uint64      // that began there
	By            Instruction // the first that did
}

// References are the accesses of the threads of a snapshot, as a trace of addresses: what whole
// program paths are for control flow, for data (Larus 1999, section 7). Accesses to the stack that
// follow from the paths, as of calls and of variables whose address nobody takes, are left out.
type References struct {
	List []Reference // by the symbols of Trace
	// Trace is a snapshot of bare symbols: its threads' streams are addresses, in the order of the
	// accesses, with a mark where it is not known what was accessed.
	Trace   *wpp.Snapshot
	Stack   uint64 // accesses that are left out
	Unknown uint64 // those of which it is not known where they were
}

// ReferencesOf replays the threads with these ids, or all. It takes some 300 ns an instruction, and
// memory for each distinct address besides the grammars.
func ReferencesOf(s *wpp.Snapshot, tids ...int) (r *References, err error) {
	defer wpp.Recover(&err)
	if !Has(s) {
		return nil, ErrNone
	}
	threads, err := query.Threads(s, tids)
	if err != nil {
		return nil, err
	}
	code, err := wet.CodeOf(s)
	if err != nil {
		return nil, err
	}
	r = &References{Trace: &wpp.Snapshot{Machine: s.Machine, Figures: s.Figures,
		Routines: []wpp.Routine{{Name: "references"}}}}
	b := &referring{References: r, code: code, symbols: map[uint64]uint32{},
		unknown: math.MaxUint32}
	for _, t := range threads {
		thread := slices.IndexFunc(s.Threads,
			func(o wpp.Thread) bool { return o.Grammar == t.Grammar })
		b.stream = sequitur.New()
		for e, err := range Instructions(s, thread) {
			if err != nil {
				return nil, err
			}
			b.take(e)
		}
		r.Trace.Threads = append(r.Trace.Threads,
			wpp.Thread{TID: t.TID, Name: t.Name, Grammar: wpp.FromSequitur(b.stream), Ended: true})
	}
	return r, nil
}

// referring makes References.
type referring struct {
	*References
	code    *wet.Code
	stream  *sequitur.Grammar
	symbols map[uint64]uint32
	unknown uint32 // the symbol of a mark; math.MaxUint32: none yet
}

func (b *referring) take(e *wet.Executed) {
	for i := range e.Accesses {
		a := &e.Accesses[i]
		switch {
		case b.ofFrame(e, a):
			b.Stack++
		case a.At == machine.Unknown:
			b.Unknown++
			if b.unknown == math.MaxUint32 {
				b.unknown = b.add(Reference{}, wpp.Symbol{IsMark: true})
			}
			b.stream.Append(b.unknown)
		default:
			b.access(e, a)
		}
	}
}

func (b *referring) access(e *wet.Executed, a *machine.Access) {
	symbol, ok := b.symbols[a.Addr]
	if !ok {
		symbol = b.add(Reference{Addr: a.Addr, By: Instruction{e.Routine, e.Addr}},
			wpp.Symbol{Path: uint64(len(b.List))})
		b.symbols[a.Addr] = symbol
	}
	of := &b.List[symbol]
	of.Size = max(of.Size, a.Size)
	if a.Write {
		of.Writes++
	} else {
		of.Reads++
	}
	b.stream.Append(symbol)
}

func (b *referring) add(of Reference, symbol wpp.Symbol) uint32 {
	b.List = append(b.List, of)
	b.Trace.Symbols = append(b.Trace.Symbols, symbol)
	return uint32(len(b.List) - 1)
}

// ofFrame reports whether an access is of a routine's own frame.
func (b *referring) ofFrame(e *wet.Executed, a *machine.Access) bool {
	switch e.Code.Op {
	case machine.Push, machine.Call:
		if a.Write {
			return true
		}
	case machine.Pop, machine.Return, machine.Leave:
		if !a.Write {
			return true
		}
	}
	_, hides := slices.BinarySearch(b.code.Routine(e.Routine).Blocks[e.Block].Frame, e.Insn)
	return hides
}
