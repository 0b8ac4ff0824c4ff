package cfg

import (
	"cmp"
	"slices"

	"wpptrace/loader/x86"
)

// Unlisted is how many bytes of code are in no routine: linkage stubs, and what neither unwind
// information nor a symbol makes known, as start-up code. Padding does not count.
func (p *Program) Unlisted() (bytes int) {
	listed := slices.Clone(p.Outside)
	for _, r := range p.Routines {
		listed = append(listed, r.Ranges...)
	}
	slices.SortFunc(listed, func(a, b [2]uint64) int { return cmp.Compare(a[0], b[0]) })
	for i := range p.Image.Sections {
		s := &p.Image.Sections[i]
		if !s.Exec {
			continue
		}
		at, end := s.Addr, s.Addr+uint64(len(s.Data))
		for _, x := range listed {
			if x[1] > at && x[0] < end {
				bytes += x86.SizeWithoutPadding(s.Data[at-s.Addr : max(at, x[0])-s.Addr])
				at = min(x[1], end)
			}
		}
		bytes += x86.SizeWithoutPadding(s.Data[at-s.Addr:])
	}
	return bytes
}
