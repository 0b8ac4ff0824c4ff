package draft

import (
	"slices"

	"wpptrace/loader/cfg"
)

// mayCallWhatReturnsTwice says whether a routine whose blocks are built may call a function that
// returns more than once, as far as that is known before all are: by its name, or since it keeps
// its return address. A call through a register may, if anything names such a function.
func (r *Program) mayCallWhatReturnsTwice(d *Routine) bool {
	return slices.ContainsFunc(d.Blocks, func(b cfg.Block) bool {
		if !b.CallReturns() {
			return false
		}
		i := r.Code.Find(b.Insns[len(b.Insns)-1].Addr)
		switch name := r.File.Imported(i); {
		case name != "":
			return cfg.IsReturnsTwiceSymbol(name)
		case b.End == cfg.Call:
			to := r.Code.Insns[i].Target()
			return r.mayReturnTwice(to) || r.Returns.ReturnUse(to).jumps && r.namesTwice()
		}
		return r.namesTwice()
	})
}

// findNamesTwice says whether anything but a direct call or jump names a function that may return
// more than once, or the slot of one.
func (r *Program) findNamesTwice() bool {
	for addr, name := range r.File.Imports {
		if cfg.IsReturnsTwiceSymbol(name) && r.File.InsnReferences.Has(addr) {
			return true
		}
	}
	for k := range r.Code.Pieces {
		if lo := r.Code.Pieces[k].Lo; (r.File.DataReferences.Has(lo) ||
			r.File.InsnReferences.Has(lo)) && r.mayReturnTwice(lo) {
			return true
		}
	}
	return r.HoldsTwice()
}

// mayReturnTwice says whether the function at an address, one of this file, may return more than
// once, as far as that is known before its frame is: it uses its return address.
func (r *Program) mayReturnTwice(entry uint64) bool {
	piece := r.Code.FindPiece(entry)
	return piece >= 0 && cfg.IsReturnsTwiceSymbol(r.Code.Pieces[piece].Symbol) ||
		r.Returns.ReturnUse(entry).Saves
}
