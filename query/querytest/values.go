package querytest

import (
	"debug/elf"

	"wpptrace/compress/ops"
	"wpptrace/compress/wet"
	"wpptrace/compress/wet/machine"
	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/faults"
	"wpptrace/compress/wpp/variables"
	"wpptrace/compress/wpp/wpptest"
	"wpptrace/internal/location"
)

// Values is a snapshot with values: the routine clip(x, limit) ran twice, by its three blocks the
// first time, by the first and the last the second time.
//
//	clip:    mov rax, rdi; cmp rax, rsi; jle done
//	         mov rax, rsi
//	done:    mov [rdx], rax; ret
func Values() *wpp.Snapshot { return clips(true, demo) }

// Threads is Values with another thread that ran the same.
func Threads() *wpp.Snapshot { return clips(true, demo, wpp.Thread{TID: 4712, Name: "worker"}) }

// Faulted is Values, but that the store faults the second time, and ends the process.
func Faulted() *wpp.Snapshot {
	s := clips(false, demo)
	s.Symbols[1] = wpp.Symbol{Path: 2, Start: ops.StartEntry, End: ops.EndCut, Blocks: []int{0}}
	s.Symbols = append(s.Symbols, wpp.Symbol{IsMark: true, Mark: ops.Cut})
	s.Threads[0].Grammar, s.Threads[0].Ended = wpptest.GrammarOf(0, 1, 2), true
	s.Sections = append(s.Sections, faults.List{{Addr: 0x40100b}}.Section())
	s.Figures.WaitStatus = new(uint32(11))
	return s
}

var demo = wpp.Thread{TID: 4711, Name: "demo"}

// clips are the runs of clip in some threads; returns: also from the second one.
func clips(returns bool, list ...wpp.Thread) *wpp.Snapshot {
	register := func(n, size uint8) machine.Operand {
		return machine.Operand{Class: machine.General, Reg: n, Size: size}
	}
	move := func(dst, src uint8) machine.Insn {
		return machine.Insn{Op: machine.Mov, Len: 3, Size: 8, Dst: register(dst, 8),
			Src: register(src, 8)}
	}
	store := move(0, machine.RAX)
	store.Dst = machine.Operand{Class: machine.Mem, Size: 8, Reg: machine.RDX,
		Index: machine.Zero, Segment: machine.Zero}
	routine := &wet.Routine{Blocks: []wet.Block{
		{Addr: 0x401000, Insns: []machine.Insn{move(machine.RAX, machine.RDI),
			{Op: machine.Cmp, Len: 3, Size: 8, Dst: register(machine.RAX, 8),
				Src: register(machine.RSI, 8)},
			{Op: machine.JumpIf, Len: 2, Size: 8, Condition: 14, Imm: 3}}},
		{Addr: 0x401008, Insns: []machine.Insn{move(machine.RAX, machine.RSI)}},
		{Addr: 0x40100b, Insns: []machine.Insn{store, {Op: machine.Return, Len: 1, Size: 8}}},
	}}
	code := wet.NewCode(func(int) *wet.Routine { return routine })
	code.Routine(0)
	code.Place(0, 0)
	log := &wet.Log{}
	log.Begin(wet.Place{}, &wet.Entry{})
	for symbol, x := range []uint64{7, 3} {
		log.Recover(wet.Place{Symbol: uint64(symbol)}, &wet.Recovery{
			Registers: 1<<machine.RDI | 1<<machine.RSI | 1<<machine.RDX,
			Values:    [16]uint64{machine.RDI: x, machine.RSI: 5, machine.RDX: 0x7000}})
		if symbol == 0 || returns {
			at := wet.Place{Symbol: uint64(symbol), Step: 2 - symbol, Block: 2, Insn: 1}
			log.Result(at, &wet.Recovery{}) // the stack pointer
		}
		log.Walked()
		log.Ran(uint32(symbol), 1)
	}
	sections := []*wpp.Section{code.Section()}
	for i := range list {
		list[i].Grammar = wpptest.GrammarOf(0, 1)
		sections = append(sections, log.Sections(i)...)
	}
	return &wpp.Snapshot{
		Machine: elf.EM_X86_64,
		Images:  []wpp.Image{{Name: "/usr/bin/demo"}},
		Files:   []string{"src/clip.c"},
		Routines: []wpp.Routine{{Name: "clip", Entry: 0x401000, Paths: 2,
			Ranges: []wpp.Range{{Lo: 0x401000, Hi: 0x40100f}},
			Blocks: []wpp.Block{{Addr: 0x401000, Lengths: []byte{3, 3, 2}, Line: 2, Last: 2},
				{Addr: 0x401008, Lengths: []byte{3}, Line: 3, Last: 3},
				{Addr: 0x40100b, Lengths: []byte{3, 1}}}}},
		Symbols: []wpp.Symbol{
			{Path: 0, Start: ops.StartEntry, End: ops.EndReturn, Blocks: []int{0, 1, 2}},
			{Path: 1, Start: ops.StartEntry, End: ops.EndReturn, Blocks: []int{0, 2}}},
		Threads:  list,
		Sections: sections,
	}
}

// Variables is Values with variables: x in clip, in the register that it is passed in; lost, there,
// of which nobody knows where it is; pair, a structure; and five, a global one.
func Variables() *wpp.Snapshot {
	s := Values()
	all := ^uint64(0)
	s.Sections = append(s.Sections, variables.Section(&variables.Table{
		Types: []variables.Type{
			{Kind: variables.Unsigned, Size: 1, Of: variables.NoType},
			{Kind: variables.Signed, Size: 2, Of: variables.NoType},
			{Kind: variables.Pointer, Size: 8, Of: 3},
			{Kind: variables.Struct, Size: 4, Of: variables.NoType, Members: []variables.Member{
				{Name: "count", Type: 1}, {Name: "flag", Type: 0, Offset: 2, FirstBit: 1, Bits: 3},
				{Name: "next", Type: 2, Offset: 8}}},
		},
		Variables: []variables.Variable{
			{Name: "x", Type: 1, Places: []variables.Place{
				{Hi: all, Expression: []byte{location.Reg0 + 5}}}},
			{Name: "lost", Type: 2, Places: []variables.Place{{Hi: all}}},
			{Name: "none", Type: 2},
			{Name: "pair", Type: 3, Places: []variables.Place{
				{Hi: all, Expression: []byte{location.ImplicitValue, 4, 0xff, 0xff, 0x0a, 0}}}},
			{Name: "five", Routine: variables.Global, Places: []variables.Place{
				{Hi: all, Expression: []byte{location.Lit0 + 5, location.StackValue}}}},
		},
	}))
	return s
}
