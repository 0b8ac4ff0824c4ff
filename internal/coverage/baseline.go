package coverage

import (
	"encoding/hex"
	"fmt"
	"path"

	"wpptrace/compress/ops"
	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/covered"
	"wpptrace/compress/wpp/store"
	"wpptrace/internal/saturating"
	"wpptrace/loader/privilege"
	"wpptrace/query"
)

// A Baseline is what earlier runs have run. It is read-only.
type Baseline struct {
	// Vague are the files that do not show all that has run: events were lost, or they were
	// recorded in windows.
	Vague  []string
	paths  uint64                // that ran
	files  []string              // all of them
	blocks []string              // of these, those that have blocks alone, and no paths
	images map[string]*ranBefore // by build id, in hex
	names  map[string]string     // build ids by the base names of images
}

// ranBefore is what is known of an image.
type ranBefore struct {
	ran     map[uint64]bool // blocks, by address
	unknown map[uint64]bool // blocks that a file does not know to have run, or not
	seen    map[uint64]bool // blocks of which a coverage says anything
	covered bool            // there is a coverage
	leftOut [][2]uint64     // code that a recording did not trace

	// edges that coverages have taken, or of which they do not say so, and blocks whose jumps they
	// have
	took, untold map[edge]bool
	jumps        map[uint64]bool
	// of recordings: blocks directly after each other on a path, how paths ended, and how often
	// blocks ran
	steps map[[2]uint64]bool
	ends  map[ending]bool
	runs  map[uint64]uint64
}

// ReadBaseline reads snapshots of any kind: what coverage -o has written, recordings and path
// profiles. Cost: that of reading them, and of counting their paths.
func ReadBaseline(paths []string) (*Baseline, error) {
	b := &Baseline{images: map[string]*ranBefore{}, names: map[string]string{}}
	for _, path := range paths {
		var s *wpp.Snapshot
		err := privilege.AsUser(func() (err error) {
			s, err = store.ReadFile(path, append(query.Sections(), covered.Kind)...)
			return err
		})
		if err != nil {
			return nil, err
		}
		if err := b.add(path, s); err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
	}
	return b, nil
}

func (b *Baseline) add(file string, s *wpp.Snapshot) error {
	c, err := covered.Of(s)
	if err != nil {
		return err
	}
	b.files = append(b.files, file)
	if c != nil {
		b.blocks = append(b.blocks, file)
		for i := range c.Images {
			m := &c.Images[i]
			b.image(m.Name, m.BuildID).addCoverage(m)
		}
		return nil
	}
	return b.addRecording(file, s)
}

// addRecording adds a recording, or a path profile.
func (b *Baseline) addRecording(file string, s *wpp.Snapshot) error {
	counts, err := query.NewFrequencies(s)
	if err != nil {
		return err
	}
	f := &s.Figures
	isVague := f.Lost > 0 || f.Gaps > 0 || f.IsSampled()
	if isVague {
		b.Vague = append(b.Vague, file)
	}
	images := make([]*ranBefore, len(s.Images))
	for i := range images {
		images[i] = b.image(path.Base(s.Images[i].Name), s.Images[i].BuildID)
	}
	for sym := range s.Symbols {
		n, r := counts.Symbol(uint32(sym)), s.RoutineOf(uint32(sym))
		if n == 0 || r == nil {
			continue
		}
		b.paths = saturating.Add(b.paths, n)
		images[r.Image].addPath(r, &s.Symbols[sym], n, isVague)
	}
	for k := range s.Routines {
		if r := &s.Routines[k]; r.LeftOut != "" {
			for _, x := range r.Ranges {
				m := images[r.Image]
				m.leftOut = append(m.leftOut, [2]uint64{x.Lo, x.Hi})
			}
		}
	}
	return nil
}

// addPath adds a path that ran n times. Where all was recorded, one that was cut off behind a block
// may have begun the next one.
func (m *ranBefore) addPath(r *wpp.Routine, p *wpp.Symbol, n uint64, isVague bool) {
	if len(p.Blocks) == 0 {
		if p.Start == ops.StartEntry && !isVague {
			m.unknown[r.Entry] = true
		}
		return
	}
	for i, b := range p.Blocks {
		addr := r.Blocks[b].Addr
		if i > 0 {
			m.steps[[2]uint64{r.Blocks[p.Blocks[i-1]].Addr, addr}] = true
		}
		if i > 0 || p.Skip == 0 {
			m.ran[addr] = true
			m.runs[addr] = saturating.Add(m.runs[addr], n)
		}
	}
	last := r.Blocks[p.Blocks[len(p.Blocks)-1]].Addr
	if p.End != ops.EndCut || p.Cut == 0 && !isVague {
		m.ends[ending{last, p.End}] = true
	}
}

func (b *Baseline) image(name string, id []byte) *ranBefore {
	key := hex.EncodeToString(id)
	b.names[name] = key
	if b.images[key] == nil {
		b.images[key] = &ranBefore{ran: map[uint64]bool{}, unknown: map[uint64]bool{},
			seen: map[uint64]bool{}, took: map[edge]bool{}, untold: map[edge]bool{},
			jumps: map[uint64]bool{}, steps: map[[2]uint64]bool{}, ends: map[ending]bool{},
			runs: map[uint64]uint64{}}
	}
	return b.images[key]
}

func (m *ranBefore) addCoverage(from *covered.Image) {
	m.covered = true
	for i := range from.Blocks {
		block := &from.Blocks[i]
		m.seen[block.Addr] = true
		switch block.Ran {
		case covered.Run:
			m.ran[block.Addr] = true
		case covered.Unknown:
			m.unknown[block.Addr] = true
		}
		if block.Jump == nil {
			continue
		}
		m.jumps[block.Addr] = true
		for o, state := range block.Jump.Outcomes {
			switch e := (edge{block.Addr, o}); state {
			case covered.Run:
				m.took[e] = true
			case covered.Unknown:
				m.untold[e] = true
			}
		}
	}
}

// isNew reports whether no file has run a block; known: they say so.
func (m *ranBefore) isNew(addr uint64) (isNew, known bool) {
	switch {
	case m.ran[addr]:
		return false, true
	case m.unknown[addr], m.covered && !m.seen[addr]:
		return true, false
	}
	for _, x := range m.leftOut {
		if x[0] <= addr && addr < x[1] {
			return true, false
		}
	}
	return true, true
}

// of is what is known of an image. It fails where that is nothing.
func (b *Baseline) of(name, buildID string) (*ranBefore, error) {
	if buildID == "" {
		return nil, fmt.Errorf("%s has no build id, so that nothing says whether a baseline is of "+
			"this build: link it with -Wl,--build-id", name)
	}
	if m := b.images[buildID]; m != nil {
		return m, nil
	}
	if _, ok := b.names[name]; ok {
		return nil, fmt.Errorf("the baselines are of another build of %s: make them of this one",
			name)
	}
	return nil, fmt.Errorf("no baseline is of %s: make one with wpptrace coverage -o", name)
}
