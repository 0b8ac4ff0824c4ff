package draft

import (
	"slices"

	"wpptrace/loader/cfg/absint"
	"wpptrace/loader/cfg/sweep"
	"wpptrace/loader/image"
	"wpptrace/loader/x86"
)

// Compilers leave ends in the code, and ways to them, where the source says that control does not
// get: at a variant that has none of its types, for one. What lies there is of another routine, or
// nothing but padding, and expects another frame, which distinguishes such an end from what goes on
// elsewhere.

// neverTaken says whether the conditional jump i leads to such an end.
func (d *Routine) neverTaken(f *sweep.File, i int) bool {
	q := &f.Code.Insns[i]
	return q.Kind == x86.Jcc && d.isEnd(f, f.Code.FrameAt(i), q.Target())
}

// isEnd says whether what leads to an address with a frame leads to where a part of the routine
// ends: what lies there, behind padding if there is any, is nothing, another's without a frame, or
// a part of another with another frame that is not its own, too. Where its rows say that less lies
// on the stack than a return address they are made by hand.
func (d *Routine) isEnd(f *sweep.File, frame image.CFA, addr uint64) bool {
	endsPart := slices.ContainsFunc(d.Pieces,
		func(p int) bool { return f.Code.Pieces[p].Hi == addr })
	if frame == absint.EntryCFA || !endsPart && len(f.Parts[addr]) == 0 {
		return false
	}
	named, full := d.partAt(f, addr)
	if full || !endsPart && !named {
		return false
	}
	i, ok := f.BehindPadding(addr)
	if i < 0 {
		return ok
	}
	return f.Inside(d.ID, i) < 0 && (f.IsFrameless(i) || d.IsAbsent(f, frame, addr, i))
}

// IsAbsent says whether none of the routine's code is at an address that it leads to with a frame,
// where, or behind padding there, a part of another with another frame begins with instruction i: a
// symbol says that nothing is left in its own, or no linker can have made one of the two.
func (d *Routine) IsAbsent(f *sweep.File, frame image.CFA, addr uint64, i int) bool {
	named, full := d.partAt(f, addr)
	begins := f.Code.FrameAt(i)
	return !full && frame != absint.EntryCFA && sweep.Contradict(frame, begins) &&
		begins.Off > absint.EntryCFA.Off && (named || f.GoesBack(i) || f.HasPads(i))
}

// partAt says whether symbols say that a part of the routine is at an address, and whether that has
// code. That another routine's part with another frame begins there says nothing: linkers fold
// parts that are the same but for their frames.
func (d *Routine) partAt(f *sweep.File, addr uint64) (named, full bool) {
	if d.Entry < 0 || f.Code.Pieces[f.Code.PieceOf[d.Entry]].Symbol == "" {
		return false, false
	}
	routine := f.Code.Pieces[f.Code.PieceOf[d.Entry]].Symbol
	for _, s := range f.Parts[addr] {
		if sweep.IsPartOf(s.Name, routine) {
			named, full = true, full || s.Size > 0
		}
	}
	if i := f.Code.FindPiece(addr); !named && i >= 0 && f.Code.Pieces[i].Lo == addr {
		// it has no size
		named = sweep.IsPartOf(f.Code.Pieces[i].Symbol, routine)
		full = named
	}
	return named, full
}
