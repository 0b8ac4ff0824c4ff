package attach

import (
	"encoding/binary"
	"maps"
	"slices"

	"wpptrace/loader/plan"
	"wpptrace/loader/target"
)

// bringTablesIn has the tables that probed jumps read in the memory of the process: the kernel
// reads an entry at a hit, before the jump does, and cannot where nothing has touched its page yet.
// What cannot be read now is left: a hit there is counted as lost.
func (m *mapped) bringTablesIn(p *target.Process) {
	if m.absent {
		return
	}
	if m.tables == nil {
		m.tables = m.tablePages()
	}
	for _, at := range m.tables {
		_ = p.ReadMemory(make([]byte, 1), m.base+at) // which has the kernel map the page
	}
}

// tablePages lists the pages of the image that hold addresses to which probed jumps through memory
// lead, sorted, not nil: by these addresses, in the file or as they will be relocated, for an index
// or a base register may lead to a table from anywhere. Cost: some ns for each word of the file,
// where there are such jumps.
func (m *mapped) tablePages() []uint64 {
	targets := m.tableTargets()
	if len(targets) == 0 {
		return []uint64{}
	}
	least, most := slices.Min(targets), slices.Max(targets)
	slices.Sort(targets)
	pages := map[uint64]bool{}
	note := func(at, word uint64) {
		if word < least || word > most {
			return
		}
		if _, ok := slices.BinarySearch(targets, word); ok {
			pages[at&^(page-1)] = true
		}
	}
	for _, r := range m.image.Relocations() {
		note(r.Addr, r.To)
	}
	for _, s := range m.image.Sections {
		if m.image.PIE { // it has no address that is not relocated
			break
		}
		for off := -s.Addr & 7; off+8 <= uint64(len(s.Data)); off += 8 {
			note(s.Addr+off, binary.LittleEndian.Uint64(s.Data[off:]))
		}
	}
	return slices.Sorted(maps.Keys(pages))
}

// tableTargets lists the addresses to which probed jumps through memory lead.
func (m *mapped) tableTargets() (list []uint64) {
	for i := range m.sites {
		c := m.sites[i].Capture
		if c == nil || c.Kind != plan.SwitchTarget || !c.Operand.Mem {
			continue
		}
		r := m.program.Containing(m.sites[i].Addr)
		for _, to := range r.Blocks[c.Table].Succ {
			list = append(list, r.Blocks[to].Lo)
		}
	}
	return list
}
