package sweep

import (
	"maps"
	"slices"
	"sync"

	"wpptrace/loader/cfg"
	"wpptrace/loader/cfg/absint"
	"wpptrace/loader/image"
	"wpptrace/loader/x86"
)

// A File is what an image says of its code, and its code of itself, before control is followed:
// what mentions what, and by which names. What is indexed by instruction covers the whole file.
type File struct {
	Code           *Code
	Image          *image.Image
	Imports        map[uint64]string
	importsLibc    bool // the C library is another image
	References     *References
	InsnReferences *References // those by instructions that are no indirect jumps
	// those by anything but instructions of routines and dynamic symbols
	DataReferences *References
	Parts          map[uint64][]image.Symbol // by address: those that name parts of routines
	PointedParts   []int                     // pieces: see FindPointedParts

	// HoldsTwice says whether data or code in no routine names a function of another image that may
	// return more than once, its stub, or its slot. Cost: the first time, a pass over these.
	HoldsTwice func() bool
}

// ReadFile collects what an image and its code say, and gives the pieces their symbols. It keeps
// both. Cost: about 10 ns a byte of data.
func ReadFile(im *image.Image, c *Code) *File {
	f := newFile(im, c)
	f.References, f.InsnReferences, f.DataReferences = collectReferences(im, c)
	f.joinReferences()
	f.nameSymbols()
	return f
}

func newFile(im *image.Image, c *Code) *File {
	f := &File{Code: c, Image: im, Imports: im.Imports(),
		Parts: map[uint64][]image.Symbol{}}
	f.HoldsTwice = sync.OnceValue(f.findHoldsTwice)
	f.importsLibc = slices.Contains(slices.Collect(maps.Values(f.Imports)), "__libc_start_main")
	return f
}

// Inside returns i if that instruction belongs to a routine, else -1.
func (f *File) Inside(routine, i int) int {
	if i < 0 || f.Code.Pieces[f.Code.PieceOf[i]].Routine != routine {
		return -1
	}
	return i
}

// Overlapped says whether instruction i is one of a pair, with a lock prefix and without it.
func (f *File) Overlapped(i int) bool {
	return i+1 < len(f.Code.Insns) && f.Code.Insns[i+1].Addr < f.Code.Insns[i].End() ||
		i > 0 && f.Code.Insns[i-1].End() > f.Code.Insns[i].Addr
}

// Next returns the instruction that follows i in the routine, or -1.
func (f *File) Next(routine, i int) int {
	n := i + 1
	if n < len(f.Code.Insns) && f.Code.Insns[n].Addr < f.Code.Insns[i].End() {
		n++ // the same without its lock prefix
	}
	if n >= len(f.Code.Insns) || f.Code.Insns[n].Addr != f.Code.Insns[i].End() {
		return -1
	}
	return f.Inside(routine, n)
}

// IsFrameless says whether the frame is gone, or not there yet, at an instruction.
func (f *File) IsFrameless(i int) bool { return f.Code.FrameAt(i) == absint.EntryCFA }

// TakenAddress is the address that instruction i puts into a register or into memory, 0 if it does
// nothing of the kind.
func (f *File) TakenAddress(i int) uint64 {
	return takenAddress(&f.Code.Insns[i], f.Code.Bytes(i), f.Image.PIE)
}

func takenAddress(q *cfg.Insn, code []byte, pie bool) uint64 {
	switch {
	case q.IsRIPRelative() && q.Operation() == x86.Lea:
		_, rm, _ := q.Operands(code, q.End())
		return uint64(rm.Disp)
	case !pie && q.Operation() == x86.Mov:
		to, _ := q.AddressImmediate(code)
		return to
	}
	return 0
}

// FindPointedParts finds the cold parts that data leads into and that do not jump back into their
// routines, so that they may be those of others, too.
func (f *File) FindPointedParts() {
	for k := range f.Code.Pieces {
		if p := &f.Code.Pieces[k]; p.IsCold() && !p.Back {
			if _, ok := f.DataReferences.Next(p.Lo, p.Hi); ok {
				f.PointedParts = append(f.PointedParts, k)
			}
		}
	}
}
