package cfg

import (
	"slices"

	"wpptrace/loader/cfg/absint"
	"wpptrace/loader/image"
	"wpptrace/loader/x86"
)

// Compilers leave ends in the code, and ways to them, where the source says that control does not
// get: at a variant that has none of its types, for one. What lies there is of another routine, or
// nothing but padding, and expects another frame, which distinguishes such an end from what goes on
// elsewhere.

// isUnreachable says whether instruction i, the last of a piece, is never executed: what lies
// behind it has another frame.
func (f *file) isUnreachable(i int) bool {
	next := f.code.find(f.code.insns[i].end())
	delta, ok := f.code.insns[i].StackDelta(f.code.bytes(i))
	return next >= 0 && ok && delta == 0 && contradict(f.code.frameAt(i), f.code.frameAt(next))
}

// neverTaken says whether the conditional jump i leads to such an end.
func (d *draft) neverTaken(f *file, i int) bool {
	q := &f.code.insns[i]
	return q.Kind == x86.Jcc && d.isEnd(f, f.code.frameAt(i), q.target())
}

// isEnd says whether what leads to an address with a frame leads to where a part of the routine
// ends: what lies there, behind padding if there is any, is nothing, another's without a frame, or
// a part of another with another frame that is not its own, too. Where its rows say that less lies
// on the stack than a return address they are made by hand.
func (d *draft) isEnd(f *file, frame image.CFA, addr uint64) bool {
	endsPart := slices.ContainsFunc(d.pieces,
		func(p int) bool { return f.code.pieces[p].Hi == addr })
	if frame == absint.EntryCFA || !endsPart && len(f.parts[addr]) == 0 {
		return false
	}
	named, full := d.partAt(f, addr)
	if full || !endsPart && !named {
		return false
	}
	i, ok := f.behindPadding(addr)
	if i < 0 {
		return ok
	}
	return f.inside(d.id, i) < 0 && (f.isFrameless(i) || d.isAbsent(f, frame, addr, i))
}

// isAbsent says whether none of the routine's code is at an address that it leads to with a frame,
// where, or behind padding there, a part of another with another frame begins with instruction i: a
// symbol says that nothing is left in its own, or no linker can have made one of the two.
func (d *draft) isAbsent(f *file, frame image.CFA, addr uint64, i int) bool {
	named, full := d.partAt(f, addr)
	begins := f.code.frameAt(i)
	return !full && frame != absint.EntryCFA && contradict(frame, begins) &&
		begins.Off > absint.EntryCFA.Off && (named || f.goesBack(i) || f.hasPads(i))
}

// hasPads says whether the part that instruction i is in has landing pads: linkers fold none with
// another's, for with a frame that is not its own nothing could be thrown in it.
func (f *file) hasPads(i int) bool {
	return slices.ContainsFunc(f.code.pieces[f.code.pieceOf[i]].Calls,
		func(site image.CallSite) bool { return site.Pad != 0 })
}

// goesBack says whether what begins at instruction i returns, or jumps back into the rest of its
// routine, before it calls anything or leaves its part otherwise. That it does with one frame only:
// linkers, which fold what is the same but for the frame, have not folded it with another's.
func (f *file) goesBack(i int) bool {
	const mostFollowed = 256 // instructions
	p := &f.code.pieces[f.code.pieceOf[i]]
	seen, work := map[int]bool{}, []int{i}
	for len(work) > 0 {
		k := work[len(work)-1]
		work = work[:len(work)-1]
		for p.first <= k && k < p.last && !seen[k] {
			seen[k] = true
			q, t := &f.code.insns[k], int(f.code.target[k])
			if q.Kind == x86.Ret {
				return true
			}
			if q.Kind == x86.Jmp || q.Kind == x86.Jcc || q.Kind == x86.Loop {
				if f.isBack(p, t) {
					return true
				}
				work = append(work, t)
			}
			if len(seen) > mostFollowed {
				return false
			}
			if q.Kind == x86.Jmp || q.Kind == x86.JmpInd || q.Kind == x86.Trap ||
				q.Kind == x86.Call || q.Kind == x86.CallInd {
				break
			}
			k++
		}
	}
	return false
}

// partAt says whether symbols say that a part of the routine is at an address, and whether that has
// code. That another routine's part with another frame begins there says nothing: linkers fold
// parts that are the same but for their frames.
func (d *draft) partAt(f *file, addr uint64) (named, full bool) {
	if d.entry < 0 || f.code.pieces[f.code.pieceOf[d.entry]].symbol == "" {
		return false, false
	}
	routine := f.code.pieces[f.code.pieceOf[d.entry]].symbol
	for _, s := range f.parts[addr] {
		if isPartOf(s.Name, routine) {
			named, full = true, full || s.Size > 0
		}
	}
	if i := f.code.findPiece(addr); !named && i >= 0 && f.code.pieces[i].Lo == addr {
		// it has no size
		named = isPartOf(f.code.pieces[i].symbol, routine)
		full = named
	}
	return named, full
}

// behindPadding returns the instruction that begins a piece at an address, or behind padding there;
// -1 if the section ends there. It answers false if other code lies there.
func (f *file) behindPadding(addr uint64) (i int, ok bool) {
	if i = f.code.find(addr); i >= 0 {
		return i, true
	}
	s := f.im.SectionAt(addr)
	if s == nil || s.Addr == addr {
		return -1, true
	}
	end := s.Addr + uint64(len(s.Data))
	next := f.code.nextPiece(addr, end)
	if x86.SizeWithoutPadding(s.Data[addr-s.Addr:next-s.Addr]) > 0 {
		return -1, false
	}
	i = f.code.find(next)
	return i, i >= 0 || next == end
}
