package querytest

import (
	"debug/elf"

	"wpptrace/compress/ops"
	"wpptrace/compress/wet"
	"wpptrace/compress/wet/machine"
	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/wpptest"
)

// Rounds is a snapshot with values: the routine count ran so many rounds of a loop of two
// instructions: one adds 1 to a register, the other jumps back. Its values are in segments, which
// begin at the rounds that isCut says.
func Rounds(rounds int, isCut func(round int) bool) *wpp.Snapshot {
	rax := machine.Operand{Class: machine.General, Reg: machine.RAX, Size: 8}
	add := machine.Insn{Op: machine.Add, Len: 4, Size: 8, Dst: rax, Imm: 1,
		Src: machine.Operand{Class: machine.Immediate, Size: 8}}
	jump := machine.Insn{Op: machine.Jump, Len: 2, Size: 8, Imm: -6,
		Src: machine.Operand{Class: machine.Immediate, Size: 8}}
	routine := &wet.Routine{Blocks: []wet.Block{{Addr: 0x401000, Insns: []machine.Insn{add, jump},
		Sites: []wet.Site{{}}}}}
	code := wet.NewCode(func(int) *wet.Routine { return routine })
	o := &counting{isCut: isCut}
	o.walker = wet.NewWalker(code, o, nil)
	if err := o.walker.Begin(); err != nil {
		panic(err) // of an oracle that has none
	}
	for range rounds {
		if err := o.walker.Path(&wet.Path{Start: ops.StartLoop, Blocks: []int{0}}); err != nil {
			panic(err) // as above
		}
		o.log.Walked()
		o.log.Ran(0, 1)
	}
	return &wpp.Snapshot{
		Machine: elf.EM_X86_64,
		Images:  []wpp.Image{{Name: "/usr/bin/count"}},
		Symbols: []wpp.Symbol{{Start: ops.StartLoop, Blocks: []int{0}}},
		Routines: []wpp.Routine{{Name: "count", Entry: 0x401000, Paths: 1, Blocks: []wpp.Block{
			{Addr: 0x401000, Lengths: []byte{4, 2}}}}},
		Threads: []wpp.Thread{{TID: 1,
			Grammar: wpptest.GrammarOf(make([]uint32, rounds)...)}},
		Sections: append(append(o.ended, o.log.Sections(0)...), code.Section()),
	}
}

// counting is an oracle that knows nothing, and ends segments.
type counting struct {
	isCut  func(int) bool
	rounds int
	walker *wet.Walker
	log    wet.Log
	ended  []*wpp.Section
}

func (o *counting) Begin(at wet.Place) (lost bool, err error) {
	o.log.Begin(at, &wet.Entry{})
	return false, nil
}

func (o *counting) Site(at wet.Place, _ int, _ *machine.Machine) (lost bool, err error) {
	if o.rounds > 0 && o.isCut(o.rounds) {
		o.ended = append(o.ended, o.log.Cut(o.walker).Sections(0)...)
	}
	o.rounds++
	return o.Begin(at)
}

func (o *counting) Load(*wet.Load) (machine.Knowledge, bool) { return machine.Unknown, false }
func (o *counting) Used(wet.Place, uint16, *machine.Machine) {}
func (o *counting) Leaves(machine.Outcome, *machine.Machine) {}
func (o *counting) Doubt()                                   {}
func (o *counting) Disagrees()                               {}

func (o *counting) Result(at wet.Place, _ uint16, _ *machine.Machine) {
	o.log.Result(at, &wet.Recovery{})
}

func (o *counting) Resync(at wet.Place, _ *machine.Machine) (begins, lost bool, err error) {
	o.log.Recover(at, &wet.Recovery{})
	return true, false, nil
}
