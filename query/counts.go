package query

import (
	"wpptrace/compress/ops"
	"wpptrace/compress/wpp"
	"wpptrace/internal/saturating"
)

// BlockCounts returns how often each basic block of an image ran, by its address, and how often
// each of its traced routines was entered, by its entry: what a later plan of the same program
// weighs its probes with. A block ran if it was seen from its first instruction on: not where a
// partial path begins behind that. It takes time linear in the grammars and the paths of the
// alphabet.
func BlockCounts(s *wpp.Snapshot, image int) (blocks, entries map[uint64]uint64, err error) {
	defer wpp.Recover(&err)
	f, err := NewFrequencies(s)
	if err != nil {
		return nil, nil, err
	}
	blocks, entries = map[uint64]uint64{}, map[uint64]uint64{}
	for i := range s.Routines {
		if r := &s.Routines[i]; r.Image == image && r.LeftOut == "" {
			entries[r.Entry] = 0
		}
	}
	for sym := range s.Symbols {
		p, r := &s.Symbols[sym], s.RoutineOf(uint32(sym))
		if r == nil || r.Image != image {
			continue
		}
		n := f.Symbol(uint32(sym))
		whole := p.Blocks
		if p.Skip > 0 {
			whole = whole[1:]
		}
		for _, b := range whole {
			blocks[r.Blocks[b].Addr] = saturating.Add(blocks[r.Blocks[b].Addr], n)
		}
		if p.Start == ops.StartEntry {
			entries[r.Entry] = saturating.Add(entries[r.Entry], n)
		}
	}
	return blocks, entries, nil
}
