package coverage

import (
	"encoding/hex"
	"fmt"
	"path"

	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/covered"
	"wpptrace/compress/wpp/store"
	"wpptrace/loader/privilege"
	"wpptrace/query"
)

// A Baseline is what earlier runs have run. It is read-only.
type Baseline struct {
	// Vague are the files that do not show all that has run: events were lost, or they were
	// recorded in windows.
	Vague  []string
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
	if f := &s.Figures; f.Lost > 0 || f.Gaps > 0 || f.IsSampled() {
		b.Vague = append(b.Vague, file)
	}
	for i := range s.Images {
		blocks, _, err := query.BlockCounts(s, i)
		if err != nil {
			return err
		}
		m := b.image(path.Base(s.Images[i].Name), s.Images[i].BuildID)
		for addr, n := range blocks {
			if n > 0 {
				m.ran[addr] = true
			}
		}
		for k := range s.Routines {
			if r := &s.Routines[k]; r.Image == i && r.LeftOut != "" {
				for _, x := range r.Ranges {
					m.leftOut = append(m.leftOut, [2]uint64{x.Lo, x.Hi})
				}
			}
		}
	}
	return nil
}

func (b *Baseline) image(name string, id []byte) *ranBefore {
	key := hex.EncodeToString(id)
	b.names[name] = key
	if b.images[key] == nil {
		b.images[key] = &ranBefore{ran: map[uint64]bool{}, unknown: map[uint64]bool{},
			seen: map[uint64]bool{}}
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
