package wpp

import (
	"debug/elf"
	"iter"
	"path"
	"slices"
	"time"

	"wpptrace/compress/ops"
)

// A Snapshot is all that a .wpp file holds: the program's tables, the alphabet of paths and marks,
// and a grammar for each thread. Indices refer from one table to another; a snapshot that Read
// returned, or that Check accepts, has none out of range. Whoever fills one owns it; readers share
// it and change nothing, so any number of goroutines may query it.
type Snapshot struct {
	Machine elf.Machine // of all images; EM_NONE: not known
	// the lines of all instructions are known, as far as debug information has them; false: of a
	// block, or of its spans, those of the first and of the last instruction alone
	EachLine bool
	Images   []Image
	Routines []Routine
	Files    []string // source files that blocks and calls refer to
	Calls    []Call   // that are inlined; their numbers count from 1
	Symbols  []Symbol // by symbol, as the terminals of the grammars name them
	Threads  []Thread
	Figures  Figures
	Sections []*Section    // of other packages, in the order of the file
	Skipped  []SectionKind // of Sections, each once: whoever read the file does not know them
}

// An Image is an ELF file of the traced process.
type Image struct {
	Name    string // path in the target's file system
	BuildID []byte // nil when the file has none
}

// Base returns the image's base name.
func (i *Image) Base() string { return path.Base(i.Name) }

// A Range is a half-open range of link-time addresses.
type Range struct{ Lo, Hi uint64 }

// A Routine is a function of an image, traced or left out.
type Routine struct {
	Name    string // demangled
	Symbol  string // as in the symbol table, "" when there is none
	Image   int    // index in Snapshot.Images
	Entry   uint64 // link-time address
	Ranges  []Range
	LeftOut string  // why it was not traced; "" if it was
	Paths   uint64  // number of acyclic paths; path numbers from there on name partial paths
	Blocks  []Block // nil for a routine that the trace did not meet
}

// A Block is a basic block. It has at least one instruction, and its instructions are contiguous.
type Block struct {
	Addr    uint64 // link-time address of the first instruction
	Lengths []byte // the length of each instruction in bytes, 1 to 15
	File    int    // index in Snapshot.Files; means nothing where Line is 0
	Line    int    // source line of the first instruction; 0: not known
	Last    int    // source line of the last instruction in the same file; at least Line
	Spans   []Span // of all its instructions, in their order; nil: one, with no call
}

// A Symbol is what a terminal of the grammars stands for: a path, or a mark.
type Symbol struct {
	IsMark bool
	Mark   ops.Mark  // of a mark
	Start  ops.Start // of a path
	End    ops.End   // of a path

	N       uint64 // of a mark
	Routine int    // of a path: index in Snapshot.Routines
	Path    uint64 // of a path: its number in the routine
	// of a path: indices in Routine.Blocks, in execution order; may be empty for a partial path
	Blocks []int
	// instructions of the first block that come before the path's first; 0 but for partial paths
	Skip int
	// instructions of the last block that come after the path's last; 0 but for partial paths
	Cut int
}

// A Thread is the whole program path of one thread.
type Thread struct {
	TID     int
	Name    string // comm
	Grammar *Grammar
	Lost    uint64 // events known to be lost
	Gaps    uint64 // places where they were
	// its end is recorded: nothing ran after the stream; false where it ran on, or where that is
	// not known
	Ended bool
}

// Figures say what was traced, how, and at what cost.
type Figures struct {
	Tool     string // version of the wpptrace that wrote the snapshot
	Command  []string
	PID      int
	Kernel   string    // release
	Start    time.Time // to the nanosecond, between the years 1678 and 2262; zero: not known
	Duration time.Duration
	Ended    string // why the recording did, as one name; "": it went on

	// how the process ended, as wait has it on Linux; nil: it went on, or that is not known
	WaitStatus *uint32

	Hits           uint64        // probe hits
	HitsSingleStep uint64        // of these, on single-stepped instructions
	HitTime        time.Duration // of a hit that is not single-stepped; 0: not known
	ReportTime     time.Duration // of a hit, over a bare probe; 0: not known
	// that the process used meanwhile, with what tracing took of it; 0: not known
	CPUTime          time.Duration
	Events           uint64 // received from the kernel
	Lost             uint64 // events lost, of all threads, dead ones and unknown ones too
	Gaps             uint64
	Probes           uint64
	ProbesSingleStep uint64 // of these, on single-stepped instructions
	// measured: run time with the probes over run time without; 0: not measured; MostSlowDown: that
	// or more
	SlowDown       float64
	SlowDownVague  bool    // SlowDown is what it was at least,
	SlowDownMost   float64 // and this at most, as far as CPU times show; 0: they do not
	SlowDownLikely float64 // and this, if one figure is wanted; 0: CPU times do not show it
	Anomalies      uint64  // events that the decoder could not explain
	Windows        uint64  // traced in so many windows, with gaps between them; 0: all the time
	// the share of the program's own CPU time that these are, above 0; 0: all
	Sampled float64
	// Sampled lies between these. SampledLeast is 0 where only SampledMost is known. Both are 0 in
	// old files.
	SampledLeast, SampledMost float64
	// the longest that a window, with its probes going in and out, held the process up, at most; 0:
	// there were none, or it is not known
	HeldUp time.Duration
}

// IsSampled reports whether a part of the run alone was traced, or nothing of it.
func (f *Figures) IsSampled() bool { return f.Sampled > 0 && f.Sampled < 1 || f.IsUntraced() }

// IsUntraced reports whether nothing was traced, since no window was opened.
func (f *Figures) IsUntraced() bool {
	return f.Windows == 0 && f.Sampled == 0 && f.SampledMost > 0
}

// SetUntraced notes that nothing was.
func (f *Figures) SetUntraced() {
	const most = 1e-12 // which tells it from a recording of all
	f.Windows, f.Sampled, f.SampledLeast, f.SampledMost = 0, 0, 0, most
}

// IsShareKnown reports whether it is known which share Sampled is, not only what it is at most.
func (f *Figures) IsShareKnown() bool { return f.SampledMost == 0 || f.SampledLeast > 0 }

// MostSlowDown is the largest slow-down that is reported: what is beyond is within the error.
const MostSlowDown = 100

// A Location is a place in the source.
type Location struct {
	File string
	Line int
}

// InSegments reports whether the grammar of a thread is in segments, as that of a large snapshot
// is: they are read from the file when they are asked for.
func (s *Snapshot) InSegments() bool {
	return slices.ContainsFunc(s.Threads, func(t Thread) bool { return t.Grammar.segments != nil })
}

// RoutineOf returns the routine that a symbol is a path of, or nil for a mark.
func (s *Snapshot) RoutineOf(sym uint32) *Routine {
	if p := &s.Symbols[sym]; !p.IsMark {
		return &s.Routines[p.Routine]
	}
	return nil
}

// ImageOf returns the image that a symbol's path runs in, or nil for a mark.
func (s *Snapshot) ImageOf(sym uint32) *Image {
	if r := s.RoutineOf(sym); r != nil {
		return &s.Images[r.Image]
	}
	return nil
}

// SymbolCost returns the number of instructions of a symbol's path; a mark costs nothing. It costs
// a step a block.
func (s *Snapshot) SymbolCost(sym uint32) (instructions uint64) {
	p := &s.Symbols[sym]
	if p.IsMark {
		return 0
	}
	blocks := s.Routines[p.Routine].Blocks
	for _, b := range p.Blocks {
		instructions += uint64(len(blocks[b].Lengths))
	}
	return instructions - uint64(p.Skip) - uint64(p.Cut)
}

// A Piece is the part of a block that a path ran: the instructions [From, To) of Block.
type Piece struct {
	Block    *Block
	From, To int
}

// Addr returns the link-time address of the piece's first instruction.
func (p Piece) Addr() uint64 {
	addr := p.Block.Addr
	for _, n := range p.Block.Lengths[:p.From] {
		addr += uint64(n)
	}
	return addr
}

// Pieces iterates over the parts of blocks that a symbol's path ran, in execution order; a mark has
// none.
func (s *Snapshot) Pieces(sym uint32) iter.Seq[Piece] {
	return func(yield func(Piece) bool) {
		p := &s.Symbols[sym]
		if p.IsMark {
			return
		}
		blocks := s.Routines[p.Routine].Blocks
		for i, b := range p.Blocks {
			piece := Piece{Block: &blocks[b], To: len(blocks[b].Lengths)}
			if i == 0 {
				piece.From = p.Skip
			}
			if i == len(p.Blocks)-1 {
				piece.To -= p.Cut
			}
			if !yield(piece) {
				return
			}
		}
	}
}

// Instructions iterates over the link-time addresses of the instructions of a symbol's path, in
// execution order; a mark has none.
func (s *Snapshot) Instructions(sym uint32) iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		for p := range s.Pieces(sym) {
			addr := p.Addr()
			for _, n := range p.Block.Lengths[p.From:p.To] {
				if !yield(addr) {
					return
				}
				addr += uint64(n)
			}
		}
	}
}

// Location returns the source line of the first instruction of a symbol's path, as far as it is
// known by block.
func (s *Snapshot) Location(sym uint32) (Location, bool) {
	for l := range s.Locations(sym) {
		return l, true
	}
	return Location{}, false
}

// Locations iterates over the source lines of a symbol's path in execution order: the first and the
// last line of each block that has any, without direct repetitions.
func (s *Snapshot) Locations(sym uint32) iter.Seq[Location] {
	return func(yield func(Location) bool) {
		var last Location
		for p := range s.Pieces(sym) {
			b := p.Block
			if b.Line == 0 {
				continue
			}
			for _, line := range [...]int{b.Line, b.Last} {
				l := Location{s.Files[b.File], line}
				if l != last && !yield(l) {
					return
				}
				last = l
			}
		}
	}
}
