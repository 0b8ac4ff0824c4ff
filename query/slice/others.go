package slice

import (
	"slices"

	"wpptrace/compress/wet"
	"wpptrace/compress/wet/machine"
	"wpptrace/compress/wpp"
	"wpptrace/query/values"
)

// Foreign is a read of memory that code which is not traced, or another thread, wrote after the
// thread had known what was there: a slice ends there. In which order threads ran is not known.
type Foreign struct {
	Read  *wet.Executed
	Since *Place // where the thread wrote there last before; nil: that is not known
	// where other threads stored what was read, of the last in each: one of these is likely to be
	// where it comes from
	Likely []Writer
}

// A Writer is an instruction of another thread.
type Writer struct {
	Place
	TID   int
	Times int // that it, or another of its thread, stored that
}

// foreignAfter is one after an instance had written there, -1 if none had.
func (g *Graph) foreignAfter(wrote int) *Foreign {
	f := &Foreign{}
	if wrote >= 0 {
		since := g.Place(wrote)
		f.Since = &since
	}
	return f
}

// findWriters looks for the stores of other threads that what was read may come from: of the same
// bytes, or some of them, with the same values. It replays these threads, if there is anything to
// look for.
func (a *Answer) findWriters(s *wpp.Snapshot, thread int) error {
	reads := map[uint64][]*Foreign{} // by aligned word of any of their bytes
	for i := range a.Parts {
		f := a.Parts[i].Foreign
		if f == nil || f.Read == nil {
			continue
		}
		for j := range f.Read.Accesses {
			x := &f.Read.Accesses[j]
			if x.Write || x.At == machine.Unknown || x.Known == machine.Unknown {
				continue
			}
			for word, last := words(x); word <= last; word++ {
				reads[word] = append(reads[word], f)
			}
		}
	}
	for i := range s.Threads {
		if i == thread || len(reads) == 0 {
			continue
		}
		for e, err := range values.Instructions(s, i) {
			if err != nil {
				return err
			}
			for j := range e.Accesses {
				if x := &e.Accesses[j]; x.Write && x.At != machine.Unknown &&
					x.Known != machine.Unknown && x.Size > 0 {
					for _, f := range readOf(reads, x) {
						f.wrote(s.Threads[i].TID, e, x)
					}
				}
			}
		}
	}
	return nil
}

// words are the first and the last aligned word that an access has bytes of.
func words(x *machine.Access) (first, last uint64) {
	return x.Addr / 8, (x.Addr + uint64(max(x.Size, 1)) - 1) / 8
}

// readOf are the reads of the words that a store has bytes of, each once.
func readOf(reads map[uint64][]*Foreign, stored *machine.Access) (list []*Foreign) {
	first, last := words(stored)
	if first == last { // as nearly always
		return reads[first]
	}
	for word := first; word <= last; word++ {
		for _, f := range reads[word] {
			if !slices.Contains(list, f) {
				list = append(list, f)
			}
		}
	}
	return list
}

// wrote notes a store, if it is of bytes that were read, with their values.
func (f *Foreign) wrote(tid int, e *wet.Executed, x *machine.Access) {
	for j := range f.Read.Accesses {
		if r := &f.Read.Accesses[j]; r.Write || !holds(r, x) {
			continue
		}
		at := Place{e.Routine, e.Block, e.Insn, e.Addr}
		if n := len(f.Likely); n > 0 && f.Likely[n-1].TID == tid {
			f.Likely[n-1] = Writer{at, tid, f.Likely[n-1].Times + 1}
		} else {
			f.Likely = append(f.Likely, Writer{at, tid, 1})
		}
		return
	}
}

// holds reports whether a read has bytes that were stored, and all of them.
func holds(read, stored *machine.Access) bool {
	if read.At == machine.Unknown || stored.Addr >= read.Addr+uint64(read.Size) ||
		read.Addr >= stored.Addr+uint64(stored.Size) {
		return false
	}
	was, is := stored.Data(), read.Data()
	for i := range was {
		if at := stored.Addr + uint64(i) - read.Addr; at < uint64(len(is)) && is[at] != was[i] {
			return false
		}
	}
	return true
}
