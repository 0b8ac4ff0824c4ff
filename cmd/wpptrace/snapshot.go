package main

import (
	"encoding/hex"
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"wpptrace/compress/ops"
	"wpptrace/compress/wpp"
	"wpptrace/decoder"
	"wpptrace/loader/cfg"
	"wpptrace/loader/image"
)

// snapshot makes a self-contained snapshot of what has been recorded so far.
func (r *recording) snapshot() (*wpp.Snapshot, error) {
	id, _ := hex.DecodeString(r.program.image.BuildID)
	s := &wpp.Snapshot{Images: []wpp.Image{{Name: r.program.image.Name, BuildID: id}}, Figures: r.figures()}
	for _, pr := range r.program.plan.Routines {
		w := wpp.Routine{Name: pr.Name, Symbol: pr.Symbol, Entry: pr.Addr, LeftOut: pr.LeftOut, Paths: r.decoder.Paths(pr.ID)}
		for _, x := range pr.Ranges {
			w.Ranges = append(w.Ranges, wpp.Range{Lo: x[0], Hi: x[1]})
		}
		s.Routines = append(s.Routines, w)
	}
	if err := r.addSymbols(s); err != nil {
		return nil, err
	}
	lines, err := r.program.image.Lines()
	if err != nil && !errors.Is(err, image.ErrNoLines) {
		r.log.Warn("the snapshot has no source lines", "why", err)
	}
	files := fileTable{snapshot: s, index: map[string]int{}}
	for i := range s.Routines {
		if s.Routines[i].Blocks != nil {
			files.fill(&s.Routines[i], r.program.cfg.Routines[i], lines)
		}
	}
	for _, t := range r.all {
		s.Threads = append(s.Threads, wpp.Thread{TID: int(t.id), Name: t.name, Grammar: wpp.FromSequitur(t.grammar), Lost: t.lost, Gaps: t.gaps})
	}
	return s, nil
}

// addSymbols says what each symbol stands for, and makes room for the blocks of the routines that were met.
func (r *recording) addSymbols(s *wpp.Snapshot) error {
	for i := range r.alphabet.Len() {
		m := r.alphabet.Meaning(uint32(i))
		if m.IsMark {
			s.Symbols = append(s.Symbols, wpp.Symbol{IsMark: true, Mark: m.Mark, N: m.N})
			continue
		}
		p, err := r.decoder.Path(m.Routine, m.Path)
		if err != nil {
			return err
		}
		cr := r.program.cfg.Routines[m.Routine]
		s.Symbols = append(s.Symbols, pathSymbol(m, p, cr))
		if s.Routines[m.Routine].Blocks == nil {
			s.Routines[m.Routine].Blocks = make([]wpp.Block, len(cr.Blocks))
		}
	}
	return nil
}

func pathSymbol(m ops.Meaning, p decoder.Partial, r *cfg.Routine) wpp.Symbol {
	s := wpp.Symbol{Routine: m.Routine, Path: m.Path, Start: p.Start, End: p.End, Blocks: p.Blocks, Skip: p.Skip}
	if p.Insns > 0 {
		s.Cut = len(r.Blocks[p.Blocks[len(p.Blocks)-1]].Insns) - p.Insns
	}
	return s
}

// A fileTable fills the blocks of routines with instruction lengths and source lines.
type fileTable struct {
	snapshot *wpp.Snapshot
	index    map[string]int
}

func (t *fileTable) fill(to *wpp.Routine, from *cfg.Routine, lines *image.Lines) {
	for i := range from.Blocks {
		b := &from.Blocks[i]
		w := wpp.Block{Addr: b.Lo}
		for _, q := range b.Insns {
			w.Lengths = append(w.Lengths, q.Len)
		}
		if lines != nil {
			t.addLines(&w, b, lines)
		}
		to.Blocks[i] = w
	}
}

func (t *fileTable) addLines(w *wpp.Block, b *cfg.Block, lines *image.Lines) {
	file, line, ok := lines.At(b.Lo)
	if !ok || line <= 0 {
		return
	}
	w.File, w.Line, w.Last = t.number(file), line, line
	if f, last, ok := lines.At(b.Insns[len(b.Insns)-1].Addr); ok && f == file && last > line {
		w.Last = last
	}
}

func (t *fileTable) number(name string) int {
	i, ok := t.index[name]
	if !ok {
		i = len(t.snapshot.Files)
		t.index[name] = i
		t.snapshot.Files = append(t.snapshot.Files, name)
	}
	return i
}

// figures sums up the recording.
func (r *recording) figures() wpp.Figures {
	f := wpp.Figures{PID: r.process.PID, Command: r.command, Kernel: kernelRelease(), Tool: version(), Start: r.began, Duration: r.duration()}
	for i := range r.program.plan.Sites {
		f.Probes++
		if r.program.plan.Sites[i].Stepped {
			f.ProbesSingleStep++
		}
	}
	for _, t := range r.all {
		f.Hits += t.hits
		f.HitsSingleStep += t.stepped
		f.Words += t.words.Words()
	}
	f.Anomalies, _ = r.decoder.Anomalies()
	m, err := r.session.Metrics()
	if err == nil {
		f.Anomalies += m.NoSite + m.Unreadable + m.LongChain + m.HighAddress
	}
	f.Lost, f.Gaps = r.lost(m), r.gaps()
	f.SlowDown = r.slowDown()
	return f
}

func (r *recording) duration() time.Duration {
	if r.ended.IsZero() {
		return time.Since(r.began)
	}
	return r.ended.Sub(r.began)
}

// slowDown is that of the whole recording; 0: not known.
func (r *recording) slowDown() float64 {
	if r.last.used.CPU <= 0 {
		return 0
	}
	return r.gauge.nature.estimate(r.last.used, r.last.hits).slower()
}

func kernelRelease() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return ""
	}
	return unix.ByteSliceToString(u.Release[:])
}
