package record

import (
	"encoding/hex"
	"fmt"
	"slices"
	"unsafe"

	"wpptrace/compress/ops"
	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/counted"
	"wpptrace/compress/wpp/faults"
	"wpptrace/compress/wpp/samples"
	windowed "wpptrace/compress/wpp/windows"
	"wpptrace/decoder"
	"wpptrace/internal/record/source"
	"wpptrace/internal/record/variables"
	"wpptrace/internal/traced"
	"wpptrace/loader/cfg"
	"wpptrace/loader/plan"
)

// snapshots are what is made of a recording, in its middle and at its end.
type snapshots struct {
	program *traced.Program
	decoder *decoder.Decoder
	threads *threads
	figures func() wpp.Figures
	symbols []wpp.Symbol // of the alphabet, as far as snapshots have needed them
	sources *source.Table
	// of a recording of values; nil: it is of paths alone
	variables *variables.Table
	command   []string
	profile   func() *samples.Profile // of the CPU time so far; nil: there is none
	counts    func() *counted.Counts  // between windows so far; nil: there are none
}

// bytes is how much memory the tables of snapshots take, but for those of the plan.
func (s *snapshots) bytes() uint64 {
	symbols := uint64(cap(s.symbols)) * uint64(unsafe.Sizeof(wpp.Symbol{}))
	return (s.threads.alphabet.Bytes()+symbols)*3/2 + s.sources.Bytes()
}

// snapshot copies what the recording will change, which is quick, and leaves the rest to complete,
// which may run while the recording goes on: it makes a self-contained snapshot of what had been
// recorded.
func (s *snapshots) snapshot() (complete func() (*wpp.Snapshot, error)) {
	if s.threads.counter != nil {
		return s.counted()
	}
	_, program := s.tables(0)
	profile, counts, entered := s.profile(), s.counts(), s.threads.entries.Counts()
	var threads []wpp.Thread
	var grammars []func() (*wpp.Grammar, error)
	var ran windowed.Lists
	var faulted faults.List
	valueSections := s.threads.values.sections(s.threads.all)
	parts := slices.Clip(s.program.Plan.Parts)
	for _, t := range s.threads.all {
		threads = append(threads,
			wpp.Thread{TID: int(t.id), Name: t.name, Lost: t.lost, Gaps: t.gaps, Ended: t.ended})
		if t.fault != nil {
			faulted = append(faulted, faults.Fault{Thread: len(threads) - 1,
				Routine: t.fault.Routine, Addr: t.fault.Addr})
		}
		grammars = append(grammars, t.stream.Copy())
		ran = append(ran, slices.Clip(t.windows))
	}
	return func() (*wpp.Snapshot, error) {
		made, err := program()
		if err != nil {
			return nil, err
		}
		made.Threads = threads
		made.Sections = append(made.Sections, entered.Section())
		if made.Figures.Windows > 0 {
			made.Sections = append(made.Sections, ran.Section())
		}
		if counts != nil && made.Figures.Windows > 0 {
			made.Sections = append(made.Sections, counts.Section())
		}
		if faulted != nil {
			made.Sections = append(made.Sections, faulted.Section())
		}
		if profile != nil {
			made.Sections = append(made.Sections, profile.Section())
		}
		made.Sections = append(made.Sections, valueSections()...)
		if s.variables != nil {
			if x := s.variables.Section(parts); x != nil {
				made.Sections = append(made.Sections, x)
			}
		}
		for i := range threads {
			if threads[i].Grammar, err = grammars[i](); err != nil {
				return nil, fmt.Errorf("copy the record of thread %d: %w", threads[i].TID, err)
			}
		}
		return made, nil
	}
}

// counted is snapshot of a path profile.
func (s *snapshots) counted() (complete func() (*wpp.Snapshot, error)) {
	_, program := s.tables(0)
	counts, profile, between := s.threads.counts(), s.profile(), s.counts()
	overlaps, err := s.threads.overlapping()
	if err != nil {
		return func() (*wpp.Snapshot, error) { return nil, err }
	}
	return func() (*wpp.Snapshot, error) {
		made, err := program()
		if err != nil {
			return nil, err
		}
		made.Sections = append(made.Sections, counts.Section())
		if overlaps != nil {
			made.Sections = append(made.Sections, overlaps.Section())
		}
		if between != nil && made.Figures.Windows > 0 {
			made.Sections = append(made.Sections, between.Section())
		}
		if profile != nil {
			made.Sections = append(made.Sections, profile.Section())
		}
		return made, nil
	}
}

// spilled is tables with the sections that are written with a segment that is spilled.
func (s *snapshots) spilled(from int) (to int, complete func() (*wpp.Snapshot, error)) {
	to, tables := s.tables(from)
	sections := s.threads.values.spill()
	return to, func() (*wpp.Snapshot, error) {
		made, err := tables()
		if err == nil {
			made.Sections = append(made.Sections, sections...)
		}
		return made, err
	}
}

// tables is snapshot without the threads, and only with the symbols from a number on. to is how
// many there are.
func (s *snapshots) tables(from int) (to int, complete func() (*wpp.Snapshot, error)) {
	if err := s.addSymbols(); err != nil {
		return from, func() (*wpp.Snapshot, error) { return nil, err }
	}
	made := &wpp.Snapshot{Machine: s.program.Image.Machine, Figures: s.figures()}
	parts := slices.Clip(s.program.Plan.Parts)
	for i := range parts {
		s.addImage(made, &parts[i])
	}
	all := slices.Clip(s.symbols)
	return len(all), func() (*wpp.Snapshot, error) {
		made.Symbols = all
		s.sources.AddTo(made, parts)
		made.Symbols = all[from:]
		return made, nil
	}
}

// addImage adds an image with its routines.
func (s *snapshots) addImage(to *wpp.Snapshot, part *plan.Part) {
	im := part.Program.Image
	id, _ := hex.DecodeString(im.BuildID)
	to.Images = append(to.Images, wpp.Image{Name: im.Name, BuildID: id})
	for _, pr := range part.Routines {
		w := wpp.Routine{Name: pr.Name, Symbol: pr.Symbol, Image: len(to.Images) - 1,
			Entry: pr.Addr, LeftOut: pr.LeftOut, Paths: s.decoder.Paths(pr.ID)}
		for _, x := range pr.Ranges {
			w.Ranges = append(w.Ranges, wpp.Range{Lo: x[0], Hi: x[1]})
		}
		to.Routines = append(to.Routines, w)
	}
}

// addSymbols says what the symbols stand for that have come up since the last snapshot.
func (s *snapshots) addSymbols() error {
	for i := len(s.symbols); i < s.threads.alphabet.Len(); i++ {
		m := s.threads.alphabet.Meaning(uint32(i))
		if m.IsMark {
			s.symbols = append(s.symbols, wpp.Symbol{IsMark: true, Mark: m.Mark, N: m.N})
			continue
		}
		p, err := s.decoder.Path(m.Routine, m.Path)
		if err != nil {
			return err
		}
		s.symbols = append(s.symbols, pathSymbol(m, p, s.program.Plan.Routines[m.Routine].Routine))
	}
	return nil
}

func pathSymbol(m ops.Meaning, p decoder.Partial, r *cfg.Routine) wpp.Symbol {
	s := wpp.Symbol{Routine: m.Routine, Path: m.Path, Start: p.Start, End: p.End, Blocks: p.Blocks,
		Skip: p.Skip}
	if p.Insns > 0 {
		s.Cut = len(r.Blocks[p.Blocks[len(p.Blocks)-1]].Insns) - p.Insns
	}
	return s
}
