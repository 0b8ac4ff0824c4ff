package soundness

import (
	"cmp"
	"math"
	"slices"

	"wpptrace/loader/cfg"
	"wpptrace/loader/image"
	"wpptrace/loader/x86"
)

// correct makes the unwind rows of a block true where the stack pointer moves without their saying
// so, and back again: inline assembly that pushes and pops is no compiler's business. It reports
// whether it did: what is still untrue where the block ends stays as it is.
func (f *frame) correct(b int) bool {
	w := f.walk(b)
	p := &f.code.Pieces[f.code.PieceOf[w.first]]
	if f.r.Steps.Add(-int64(w.n+len(p.Rows()))) < 0 {
		return false
	}
	var corrected []image.Row // from the first that is untrue on
	untrue := false
	compare := func(row image.Row, pc uint64, depth int) bool {
		if row.CFA.Reg != x86.DwarfRSP || depth < 0 || depth > math.MaxInt32 {
			return false
		}
		if untrue = int(row.CFA.Off) != depth; untrue || len(corrected) > 0 {
			row.PC, row.CFA.Off = pc, int32(depth)
			corrected = append(corrected, row)
		}
		return true
	}
	for w.next() {
		if w.k > 0 {
			w.depth = w.expected
		}
		if !compare(w.row, w.insn().Addr, w.depth) {
			return false
		}
	}
	if end := w.insn().End(); f.d.Blocks[b].End == cfg.Fall && !compare(image.RowAt(p.Rows(), end),
		end,
		w.after()) {
		return false
	}
	if len(corrected) == 0 || untrue {
		return false
	}
	rows := slices.DeleteFunc(slices.Clone(p.Rows()), func(row image.Row) bool {
		return corrected[0].PC <= row.PC && row.PC <= corrected[len(corrected)-1].PC
	})
	rows = append(rows, corrected...)
	slices.SortFunc(rows, func(a, b image.Row) int { return cmp.Compare(a.PC, b.PC) })
	p.SetRows(rows)
	return true
}
