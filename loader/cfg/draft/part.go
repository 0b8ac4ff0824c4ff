package draft

import (
	"wpptrace/loader/cfg"
	"wpptrace/loader/cfg/absint"
	"wpptrace/loader/cfg/jumptable"
	"wpptrace/loader/cfg/sweep"
	"wpptrace/loader/x86"
)

// PartsOutside lists the parts of the routines that are not recovered.
func (r *Program) PartsOutside() (parts [][2]uint64) {
	n := 0
	for k := range r.Code.Pieces {
		if !r.IsKnown(r.Code.Pieces[k].Routine) {
			n++
		}
	}
	parts = make([][2]uint64, 0, n)
	for k := range r.Code.Pieces {
		if p := &r.Code.Pieces[k]; !r.IsKnown(p.Routine) {
			parts = append(parts, [2]uint64{p.Lo, p.Hi})
		}
	}
	return parts
}

// EachJumpOutside calls back for each direct jump of the routines that are not recovered out of
// themselves: with the address of the routine, and that which it jumps to, a routine's or what is
// none's.
func (r *Program) EachJumpOutside(visit func(from, to uint64)) {
	if r.Survey == nil {
		return
	}
	for i := range r.Survey.Jumps {
		j := &r.Survey.Jumps[i]
		from := r.Code.Pieces[j.From].Routine
		switch {
		case r.IsKnown(from):
		case j.To < 0:
			visit(r.AddrOf(from), j.Target)
		case r.Code.Pieces[j.To].Routine != from:
			visit(r.AddrOf(from), r.AddrOf(r.Code.Pieces[j.To].Routine))
		}
	}
}

// EachStrayOutside calls back for each direct call, and each jump, of the routines that are not
// recovered to code that is in no routine, nor a linkage stub. gone: the frame is, or it is a call.
func (r *Program) EachStrayOutside(visit func(to uint64, gone bool)) {
	if r.Survey == nil {
		return
	}
	for _, m := range r.Survey.Strays {
		if !r.IsKnown(r.Code.Pieces[m.From].Routine) {
			visit(m.Addr, true)
		}
	}
	for i := range r.Survey.Jumps {
		if j := &r.Survey.Jumps[i]; j.To < 0 && !r.IsKnown(r.Code.Pieces[j.From].Routine) &&
			!r.File.IsStub(j.Target) {
			visit(j.Target, j.Frame == absint.EntryCFA)
		}
	}
}

// EachIndirectOutside calls back with the address of each routine that is not recovered and that
// may end by a jump to where a register or memory says.
func (r *Program) EachIndirectOutside(visit func(addr uint64)) {
	if r.Survey == nil {
		return
	}
	for k := range r.Code.Pieces {
		if id := r.Code.Pieces[k].Routine; !r.IsKnown(id) &&
			r.Survey.Marks(k)&sweep.Indirect != 0 {
			visit(r.AddrOf(id))
		}
	}
}

// EachNamingOutside calls back with each routine, by its entry, that is not recovered, may end by a
// jump to where a register or memory says, and has an instruction that names an address of code, or
// a slot, or a slot that holds the address.
func (r *Program) EachNamingOutside(addr uint64, visit func(routine uint64)) {
	if r.Survey == nil {
		return
	}
	r.Survey.EachNaming(addr, func(piece int) {
		if id := r.Code.Pieces[piece].Routine; !r.IsKnown(id) {
			visit(r.AddrOf(id))
		}
	})
}

// EachEntryUnseen calls back with each routine, and where amid it a jump or call may lead in code
// of routines that are not recovered: in what control flow is not known to reach, or by a table.
func (r *Program) EachEntryUnseen(visit func(d *Routine, at uint64)) {
	if r.Survey == nil {
		return
	}
	for _, m := range r.Survey.Unseen {
		to := r.Code.Pieces[r.Code.FindPiece(m.Addr)].Routine
		if r.IsKnown(to) && !r.IsKnown(r.Code.Pieces[m.From].Routine) {
			visit(r.Routines[to], m.Addr)
			r.Survey.Want(int(m.From)) // it may be that control flow is known to reach that
		}
	}
	for _, d := range r.Routines {
		own := jumptable.Targets(d.Tables)
		note := func(at uint64) {
			if i := r.Code.Find(at); i >= 0 && !own[i] && r.RoutineAt(i) < 0 {
				visit(d, at)
			}
		}
		for _, k := range d.Pieces {
			p := &r.Code.Pieces[k]
			for at, ok := r.File.DataReferences.Next(p.Lo, p.Hi); ok; at, ok =
				r.File.DataReferences.Next(at+1, p.Hi) {
				if p.First == p.Last || !r.File.IsUnexplained(p.First) {
					break // a number that looks like an address, or a table of its own
				}
				note(at)
			}
			for at, ok := r.Survey.Amid.Next(p.Lo, p.Hi); ok; at, ok =
				r.Survey.Amid.Next(at+1, p.Hi) {
				note(at)
			}
		}
	}
}

// WantCallees notes of the routines that are not recovered, and that a routine calls, jumps to or
// names, those that do anything with their return addresses: what they do has to be known.
func (r *Program) WantCallees(d *Routine) {
	note := func(addr uint64) { r.wantUser(addr, map[uint64]bool{}) }
	for _, k := range d.Pieces {
		p := &r.Code.Pieces[k]
		for i := p.First; i < p.Last; i++ {
			q := &r.Code.Insns[i]
			if q.Kind.IsRelative() {
				if to := q.Target(); to < p.Lo || to >= p.Hi {
					note(to)
				}
				continue
			}
			sweep.EachOperand(q, r.Code.Bytes(i), !r.File.Image.PIE, func(addr uint64) {
				note(addr)
				if to, ok := r.File.HeldAt(addr); ok {
					note(to)
				}
			})
		}
	}
}

// wantUser notes the routine that begins at an address, and those that it ends by a jump to, if
// they do anything with their return addresses.
func (r *Program) wantUser(addr uint64, seen map[uint64]bool) {
	piece := r.Code.FindPiece(addr)
	if piece < 0 || seen[addr] || r.IsKnown(r.Code.Pieces[piece].Routine) ||
		r.Code.Pieces[piece].Lo != addr {
		return
	}
	seen[addr] = true
	if use := r.Returns.ReturnUse(addr); use.Saves || use.Moves || use.Drops ||
		cfg.IsReturnsTwiceSymbol(r.Code.Pieces[piece].Symbol) {
		r.Survey.Want(piece)
	}
	for _, j := range r.Survey.JumpsFrom(piece) {
		if j.Kind == x86.Jmp || j.Kind == x86.Jcc {
			r.wantUser(j.Target, seen)
		}
	}
}

// EachEntryOutside calls back for each address by which a routine is entered that is not recovered
// and has its entry at an address.
func (r *Program) EachEntryOutside(addr uint64, visit func(addr uint64)) {
	piece := r.Code.FindPiece(addr)
	if piece < 0 || r.IsKnown(r.Code.Pieces[piece].Routine) {
		return
	}
	pieces := r.Survey.PiecesOf(r.Code.Pieces[piece].Routine)
	for _, k := range pieces {
		if len(pieces) > 1 && r.Survey.IsEntry(int(k)) {
			visit(r.Code.Pieces[k].Lo)
		}
	}
}
