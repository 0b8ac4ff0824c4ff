package verify

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strings"

	"wpptrace/loader/cfg"
	"wpptrace/loader/image"
	"wpptrace/loader/x86"
)

// checkUnseen: code whose control flow is not known, that of routines which the recovery of control
// flow has left out, may run from its first byte to its last. It enters no traced routine but by an
// entry, and none there that relies on its callers (rule 1: implied activations).
func (v *verifier) checkUnseen() {
	for _, r := range v.plan.Routines {
		if r.Routine.LeftOut != "" {
			v.eachTransfer(r.Routine,
				func(in *x86.Inst, from uint64) { v.checkEntered(r.Routine, in, from) })
		}
	}
	for _, r := range v.traced {
		for _, x := range r.Ranges {
			if !hasBlock(r, x) {
				r.fault(fmt.Sprintf("nothing is known of its part from %x to %x", x[0], x[1]))
			}
		}
	}
}

// eachTransfer calls back for each direct call and jump in a routine's bytes, whether or not
// control flow reaches it, with its address. Where it is not known to, an instruction may begin at
// any byte; but a jump of few bytes is believed only where the instructions before it lead to it.
func (v *verifier) eachTransfer(r *cfg.Routine, visit func(in *x86.Inst, from uint64)) {
	for _, x := range r.Ranges {
		next := x[0]
		for at := x[0]; at < x[1]; at++ {
			in, ok := x86.Decode(v.plan.Program.Image.Bytes(at, x[1]))
			inSequence := at == next
			if inSequence {
				next = at + max(uint64(in.Len), 1)
			}
			if !ok || !inSequence && (in.Len < 5 || isWithin(r, at)) {
				continue
			}
			switch in.Kind {
			case x86.Call, x86.Jmp, x86.Jcc, x86.Loop:
				visit(&in, at)
			}
		}
	}
}

// isWithin reports whether an instruction that is reached covers an address and begins before it.
func isWithin(r *cfg.Routine, at uint64) bool {
	b := sort.Search(len(r.Blocks), func(b int) bool { return r.Blocks[b].Hi > at })
	return b < len(r.Blocks) && slices.ContainsFunc(r.Blocks[b].Insns,
		func(q cfg.Insn) bool { return q.Addr < at && at < q.Addr+uint64(q.Len) })
}

// checkEntered checks what a direct call or jump out of a routine of which not all is known enters.
func (v *verifier) checkEntered(by *cfg.Routine, in *x86.Inst, from uint64) {
	to := from + uint64(in.Len) + uint64(int64(in.Rel))
	holder := v.plan.Program.Containing(to)
	if holder == nil || holder == by || !v.routines[holder.ID].Traced() {
		return
	}
	switch r := v.routines[holder.ID]; {
	case v.plan.Program.At(to) != holder && in.Kind != x86.Call && contradict(by.CFA(from),
		holder.CFA(to)) && (v.isEmptied(by, to) || goesBack(holder, to)):
		// never: of a part in which nothing is left the jump to it remains.
	case v.plan.Program.At(to) != holder:
		r.fault(fmt.Sprintf("%s, which is left out, enters it in its middle at %x from %x", by.Name,
			to, from))
	case r.probeFree:
		r.fault(fmt.Sprintf("it may end without an event, and %s, which is left out, enters it "+
			"from %x", by.Name, from))
	}
}

// isEmptied reports whether a symbol says that a part of the routine without any code is at an
// address, where another's lies.
func (v *verifier) isEmptied(r *cfg.Routine, at uint64) bool {
	empty, others := false, false
	symbols := v.plan.Program.Image.Symbols()
	i, _ := slices.BinarySearchFunc(symbols, at,
		func(s image.Symbol, addr uint64) int { return cmp.Compare(s.Addr, addr) })
	for ; i < len(symbols) && symbols[i].Addr == at; i++ {
		s := &symbols[i]
		of, own := strings.CutPrefix(s.Name, r.Symbol)
		switch own = own && r.Symbol != "" &&
			(strings.HasPrefix(of, ".cold") || strings.HasPrefix(of, ".__part.")); {
		case own && s.Size > 0:
			return false
		case own:
			empty = true
		default:
			others = others || s.Size > 0
		}
	}
	return empty && others
}

// goesBack reports whether what begins at an address, where a part of the routine does, returns, or
// jumps to the rest of the routine: it has one frame then, and is not the part of another with
// another.
func goesBack(r *cfg.Routine, at uint64) bool {
	i := slices.IndexFunc(r.Ranges, func(x [2]uint64) bool { return x[0] == at })
	first := slices.IndexFunc(r.Blocks, func(b cfg.Block) bool { return b.Lo == at })
	if i < 0 || first < 0 {
		return false
	}
	seen := map[int]bool{first: true}
	for work := []int{first}; len(work) > 0; work = work[1:] {
		b := &r.Blocks[work[0]]
		if b.End == cfg.Ret {
			return true
		}
		for _, to := range b.Succ {
			switch {
			case to < 0 || seen[to]:
			case r.Blocks[to].Lo < r.Ranges[i][0] || r.Ranges[i][1] <= r.Blocks[to].Lo:
				return true
			default:
				seen[to] = true
				work = append(work, to)
			}
		}
	}
	return false
}

// contradict reports whether two frames cannot be one.
func contradict(a, b image.CFA) bool {
	return a.Reg == b.Reg && a.Reg != image.Undefined && a.Off != b.Off
}

// hasBlock reports whether a range of the routine holds a block.
func hasBlock(r *routine, x [2]uint64) bool {
	for b := range r.Blocks {
		if x[0] <= r.Blocks[b].Lo && r.Blocks[b].Lo < x[1] {
			return true
		}
	}
	return false
}
