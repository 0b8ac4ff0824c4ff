package main

import (
	"debug/elf"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"wpptrace/compress/ops"
	"wpptrace/compress/wpp"
	"wpptrace/decoder"
	"wpptrace/loader/cfg"
	"wpptrace/loader/plan"
)

// snapshot copies what the recording will change, which is quick, and leaves the rest to complete,
// which may run while the recording goes on: it makes a self-contained snapshot of what had been
// recorded.
func (r *recording) snapshot() (complete func() (*wpp.Snapshot, error)) {
	_, program := r.tables(0)
	var threads []wpp.Thread
	var grammars []func() (*wpp.Grammar, error)
	for _, t := range r.all {
		threads = append(threads, wpp.Thread{TID: int(t.id), Name: t.name, Lost: t.lost, Gaps: t.gaps, Ended: t.ended})
		grammars = append(grammars, t.stream.Copy())
	}
	return func() (*wpp.Snapshot, error) {
		s, err := program()
		if err != nil {
			return nil, err
		}
		s.Threads = threads
		for i := range threads {
			if threads[i].Grammar, err = grammars[i](); err != nil {
				return nil, fmt.Errorf("copy the record of thread %d: %w", threads[i].TID, err)
			}
		}
		return s, nil
	}
}

// tables is snapshot without the threads, and only with the symbols from a number on. to is how
// many there are.
func (r *recording) tables(from int) (to int, complete func() (*wpp.Snapshot, error)) {
	if err := r.addSymbols(); err != nil {
		return from, func() (*wpp.Snapshot, error) { return nil, err }
	}
	s := &wpp.Snapshot{Machine: elf.EM_X86_64, Figures: r.figures()}
	parts := slices.Clip(r.program.plan.Parts)
	for i := range parts {
		r.addImage(s, &parts[i])
	}
	all := slices.Clip(r.symbols)
	return len(all), func() (*wpp.Snapshot, error) {
		s.Symbols = all
		addBlocks(s, parts, r.troubles)
		s.Symbols = all[from:]
		return s, nil
	}
}

// addImage adds an image with its routines.
func (r *recording) addImage(s *wpp.Snapshot, part *plan.Part) {
	im := part.Program.Image
	id, _ := hex.DecodeString(im.BuildID)
	s.Images = append(s.Images, wpp.Image{Name: im.Name, BuildID: id})
	for _, pr := range part.Routines {
		w := wpp.Routine{Name: pr.Name, Symbol: pr.Symbol, Image: len(s.Images) - 1, Entry: pr.Addr, LeftOut: pr.LeftOut, Paths: r.decoder.Paths(pr.ID)}
		for _, x := range pr.Ranges {
			w.Ranges = append(w.Ranges, wpp.Range{Lo: x[0], Hi: x[1]})
		}
		s.Routines = append(s.Routines, w)
	}
}

// addSymbols says what the symbols stand for that have come up since the last snapshot.
func (r *recording) addSymbols() error {
	for i := len(r.symbols); i < r.alphabet.Len(); i++ {
		m := r.alphabet.Meaning(uint32(i))
		if m.IsMark {
			r.symbols = append(r.symbols, wpp.Symbol{IsMark: true, Mark: m.Mark, N: m.N})
			continue
		}
		p, err := r.decoder.Path(m.Routine, m.Path)
		if err != nil {
			return err
		}
		r.symbols = append(r.symbols, pathSymbol(m, p, r.program.plan.Routines[m.Routine].Routine))
	}
	return nil
}

// addBlocks adds the blocks of the routines that were met.
func addBlocks(s *wpp.Snapshot, parts []plan.Part, troubles *debugTroubles) {
	met := make([]bool, len(s.Routines))
	for i := range s.Symbols {
		if m := &s.Symbols[i]; !m.IsMark {
			met[m.Routine] = true
		}
	}
	sources := newSourceTable(s)
	i := 0
	for _, part := range parts {
		im := part.Program.Image
		lines, err := im.Lines()
		troubles.tell(im, "the snapshot has no source lines", err)
		for _, pr := range part.Routines {
			if met[i] {
				sources.fill(&s.Routines[i], pr.Routine, lines)
			}
			i++
		}
		if lines != nil {
			troubles.tell(im, "the snapshot does not tell of all inlined calls", lines.Trouble())
			lines.Release()
		}
	}
}

func pathSymbol(m ops.Meaning, p decoder.Partial, r *cfg.Routine) wpp.Symbol {
	s := wpp.Symbol{Routine: m.Routine, Path: m.Path, Start: p.Start, End: p.End, Blocks: p.Blocks, Skip: p.Skip}
	if p.Insns > 0 {
		s.Cut = len(r.Blocks[p.Blocks[len(p.Blocks)-1]].Insns) - p.Insns
	}
	return s
}

// figures sums up the recording.
func (r *recording) figures() wpp.Figures {
	f := wpp.Figures{PID: r.process.PID, Command: r.command, Kernel: kernelRelease(), Tool: version(), Start: r.began, Duration: r.duration(), Ended: string(r.endedOn)}
	for i := range r.program.plan.Sites {
		f.Probes++
		if r.program.plan.Sites[i].Stepped {
			f.ProbesSingleStep++
		}
	}
	for _, t := range r.all {
		f.Hits += t.hits
		f.HitsSingleStep += t.stepped
		f.Words += t.taken
		f.Anomalies += t.amiss
	}
	misfits, _ := r.decoder.Anomalies()
	f.Anomalies += misfits
	m, err := r.session.Metrics()
	if err == nil {
		f.Anomalies += m.NoSite + m.Unreadable + m.LongChain + m.HighAddress
	}
	f.Lost, f.Gaps = r.lost(m), r.gaps()
	f.HitTime, f.ReportTime = r.hitTime()
	f.CPUTime, _ = r.traced()
	r.tellSlowDown(&f)
	if end, known := r.session.Exit(); known {
		status := uint32(end)
		f.WaitStatus = &status
	}
	f.Windows, f.Sampled, f.SampledMost = r.windows.sampled(r.meter.KernelShare)
	return f
}

func (r *recording) duration() time.Duration {
	if r.ended.IsZero() {
		return time.Since(r.began)
	}
	return r.ended.Sub(r.began)
}

// traced is the CPU time that the process has used since the recording began, and of it the cost of
// hits by calibration.
func (r *recording) traced() (cpu, hits time.Duration) {
	return r.last.Used.Sub(r.first.Used).CPU, r.last.Hits.Minus(r.first.Hits).Cost
}

// hitTime is what a hit took that was not single-stepped, and of that, what reporting it did; 0, what
// is not known.
func (r *recording) hitTime() (whole, report time.Duration) {
	if r.meter.IsCalibrated() {
		whole = r.meter.HitTime(r.traced())
	}
	report, _ = r.session.ReportTime()
	return whole, report
}

// tellSlowDown is of the whole recording. Where there were windows, putting probes in and out
// counts, too.
func (r *recording) tellSlowDown(f *wpp.Figures) {
	if r.windows != nil && r.windows.Closed() > 0 {
		f.SlowDown = 1 + r.windows.Overhead()
		return
	}
	if r.last.Used.CPU <= 0 {
		return
	}
	e := r.meter.KernelShare.Estimate(r.last.Used.Sub(r.first.Used), r.last.Hits.Minus(r.first.Hits))
	if !e.Vague() {
		f.SlowDown = e.Slower()
		return
	}
	f.SlowDown, f.SlowDownVague, f.SlowDownMost = e.AtLeast(), true, e.AtMost()
	if !e.Boundless() {
		f.SlowDownLikely = e.Slower()
	}
}

func kernelRelease() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return ""
	}
	return unix.ByteSliceToString(u.Release[:])
}
