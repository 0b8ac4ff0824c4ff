package sweep

import (
	"slices"

	"wpptrace/loader/image"
	"wpptrace/loader/x86"
)

// IsUnreachable says whether instruction i, the last of a piece, is never executed: what lies
// behind it has another frame.
func (f *File) IsUnreachable(i int) bool {
	next := f.Code.Find(f.Code.Insns[i].End())
	delta, ok := f.Code.Insns[i].StackDelta(f.Code.Bytes(i))
	return next >= 0 && ok && delta == 0 && Contradict(f.Code.FrameAt(i), f.Code.FrameAt(next))
}

// HasPads says whether the part that instruction i is in has landing pads: linkers fold none with
// another's, for with a frame that is not its own nothing could be thrown in it.
func (f *File) HasPads(i int) bool {
	return slices.ContainsFunc(f.Code.Pieces[f.Code.PieceOf[i]].Calls(),
		func(site image.CallSite) bool { return site.Pad != 0 })
}

// GoesBack says whether what begins at instruction i returns, or jumps back into the rest of its
// routine, before it calls anything or leaves its part otherwise. That it does with one frame only:
// linkers, which fold what is the same but for the frame, have not folded it with another's.
func (f *File) GoesBack(i int) bool {
	const mostFollowed = 256 // instructions
	p := &f.Code.Pieces[f.Code.PieceOf[i]]
	seen, work := map[int]bool{}, []int{i}
	for len(work) > 0 {
		k := work[len(work)-1]
		work = work[:len(work)-1]
		for p.First <= k && k < p.Last && !seen[k] {
			seen[k] = true
			q, t := &f.Code.Insns[k], int(f.Code.Target[k])
			if q.Kind == x86.Ret {
				return true
			}
			if q.Kind == x86.Jmp || q.Kind == x86.Jcc || q.Kind == x86.Loop {
				if f.IsBack(p, t) {
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

// BehindPadding returns the instruction that begins a piece at an address, or behind padding there;
// -1 if the section ends there. It answers false if other code lies there.
func (f *File) BehindPadding(addr uint64) (i int, ok bool) {
	if i = f.Code.Find(addr); i >= 0 {
		return i, true
	}
	s := f.Image.SectionAt(addr)
	if s == nil || s.Addr == addr {
		return -1, true
	}
	end := s.Addr + uint64(len(s.Data))
	next := f.Code.nextPiece(addr, end)
	if !x86.IsPadding(s.Data[addr-s.Addr : next-s.Addr]) {
		return -1, false
	}
	i = f.Code.Find(next)
	return i, i >= 0 || next == end
}
