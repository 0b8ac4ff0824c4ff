package draft

import (
	"slices"
	"sync"

	"wpptrace/loader/cfg"
	"wpptrace/loader/cfg/sweep"
)

// Twice says what may return more than once, as setjmp does, as far as that is known before all
// routines are built. What is asked of the whole file is found once. It serves several goroutines
// at a time.
type Twice struct {
	code    *sweep.Code
	file    *sweep.File
	returns *Returns
	isNamed func() bool // findNamed, once
}

func newTwice(f *sweep.File, returns *Returns) *Twice {
	t := &Twice{code: f.Code, file: f, returns: returns}
	t.isNamed = sync.OnceValue(t.findNamed)
	return t
}

// mayBeCalledBy says whether a routine whose blocks are built may call a function that returns more
// than once: by its name, or since it keeps its return address. A call through a register may, if
// anything names such a function.
func (t *Twice) mayBeCalledBy(d *Routine) bool {
	return slices.ContainsFunc(d.Blocks, func(b cfg.Block) bool {
		if !b.CallReturns() {
			return false
		}
		i := t.code.Find(b.Insns[len(b.Insns)-1].Addr)
		switch name := t.file.Imported(i); {
		case name != "":
			return cfg.IsReturnsTwiceSymbol(name)
		case b.End == cfg.Call:
			to := t.code.Insns[i].Target()
			return t.includes(to) || t.returns.ReturnUse(to).jumps && t.isNamed()
		}
		return t.isNamed()
	})
}

// findNamed says whether anything but a direct call or jump names a function that may return
// more than once, or the slot of one.
func (t *Twice) findNamed() bool {
	for addr, name := range t.file.Imports {
		if cfg.IsReturnsTwiceSymbol(name) && t.file.InsnReferences.Has(addr) {
			return true
		}
	}
	for k := range t.code.Pieces {
		if lo := t.code.Pieces[k].Lo; (t.file.DataReferences.Has(lo) ||
			t.file.InsnReferences.Has(lo)) && t.includes(lo) {
			return true
		}
	}
	return t.file.HoldsTwice()
}

// includes says whether the function at an address, one of this file, may return more than once: by
// its name, or since it keeps its return address.
func (t *Twice) includes(entry uint64) bool {
	piece := t.code.FindPiece(entry)
	return piece >= 0 && cfg.IsReturnsTwiceSymbol(t.code.Pieces[piece].Symbol) ||
		t.returns.ReturnUse(entry).Saves
}
