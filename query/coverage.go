package query

import (
	"math"
	"slices"

	"wpptrace/query/internal/forest"
)

// coverEach sets what each of the subpaths covers, alone: each execution of a path counted once
// though occurrences of the subpath may overlap. It is count times the subpath's cost less what
// overlaps: an occurrence that the next one follows d symbols later shares all but its first d with
// it. How often one does is the frequency of the two of them in one string. These strings are
// counted all at once. Terms may pass 2^64, so they are added modulo 2^64: the result is exact, for
// it is at most the total. Where that has passed 2^64 itself, Covered is the Cost.
func coverEach(f *forest.Forest, subpaths []Subpath, cost []uint64, total uint64) {
	var twice [][]uint32
	var of []int // twice -> index in subpaths
	for i := range subpaths {
		p := &subpaths[i]
		if p.Covered = p.Cost; total == math.MaxUint64 {
			continue
		}
		p.Covered = p.Count * sum(p.Symbols, cost)
		for _, d := range nearestShifts(p.Symbols) {
			twice, of = append(twice, slices.Concat(p.Symbols[:d], p.Symbols)), append(of, i)
		}
	}
	for k, n := range f.CountAll(twice) {
		p := &subpaths[of[k]]
		shared := p.Symbols[len(twice[k])-len(p.Symbols):]
		p.Covered -= n * sum(shared, cost)
	}
}

// sum adds up costs, modulo 2^64.
func sum(symbols []uint32, cost []uint64) (total uint64) {
	for _, sym := range symbols {
		total += cost[sym]
	}
	return total
}

// nearestShifts returns by how many symbols an occurrence of a sequence may be followed by the next
// that overlaps it.
func nearestShifts(sequence []uint32) []int {
	var shifts []int
	for d := 1; d < len(sequence); d++ {
		if !slices.Equal(sequence[d:], sequence[:len(sequence)-d]) {
			continue
		}
		twice := slices.Concat(sequence[:d], sequence)
		between := slices.ContainsFunc(shifts,
			func(e int) bool { return slices.Equal(twice[e:e+len(sequence)], sequence) })
		if !between {
			shifts = append(shifts, d)
		}
	}
	return shifts
}
