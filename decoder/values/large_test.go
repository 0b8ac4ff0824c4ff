package values

import (
	"encoding/binary"
	"testing"

	"wpptrace/bpf/wire"
	"wpptrace/compress/ops"
	"wpptrace/compress/sequitur"
	"wpptrace/compress/wet"
	"wpptrace/compress/wet/machine"
	"wpptrace/compress/wpp"
	"wpptrace/decoder"
	"wpptrace/loader/cfg"
	"wpptrace/loader/loads"
	"wpptrace/loader/plan"
)

// onePath is the paths of a routine that has one.
type onePath struct{}

func (onePath) Path(int, uint64) (decoder.Partial, error) {
	return decoder.Partial{Blocks: []int{0}}, nil
}

// TestSnapshotAmidALargeStretch: a snapshot amid a stretch that writes more memory than is kept can
// be replayed: nothing is known of that stretch.
func TestSnapshotAmidALargeStretch(t *testing.T) {
	rbx := machine.Operand{Class: machine.General, Size: 8, Reg: machine.RBX}
	there := machine.Operand{Class: machine.Mem, Size: 8, Reg: machine.RBX, Index: machine.Zero,
		Segment: machine.Zero}
	insns := []machine.Insn{{Op: machine.NoOp, Len: 1}}
	for range 33_000 {
		insns = append(insns, machine.Insn{Op: machine.Mov, Len: 3, Size: 8, Dst: there, Src: rbx},
			machine.Insn{Op: machine.Add, Len: 4, Size: 8, Dst: rbx, Imm: 4096,
				Src: machine.Operand{Class: machine.Immediate, Size: 8}})
	}
	lengths := make([]byte, len(insns))
	for i := range insns {
		lengths[i] = insns[i].Len
	}
	c := wet.NewCode(func(int) *wet.Routine {
		return &wet.Routine{Blocks: []wet.Block{{Addr: 0x1000, Insns: insns}}}
	})
	base := &plan.Plan{Routines: []*plan.Routine{{Routine: &cfg.Routine{}}},
		Sites: []plan.Site{{}}}
	symbols, g := &ops.Symbols{}, sequitur.New()
	rec := New(&loads.Plan{Base: base}, c, onePath{}, symbols, nil)
	th := rec.Thread(1, 1, ops.NewRecorder(symbols, func(sym uint32, _ uint64) { g.Append(sym) }))
	state := wire.State{Ordinal: 1, Whole: true, Registers: make([]uint64, 17)}
	state.Registers[machine.RBX] = 1 << 32
	data := wire.AppendState(nil, &state)
	head := binary.LittleEndian.AppendUint32(nil, 1)
	head = binary.LittleEndian.AppendUint32(head, wire.StatesRecord|uint32(len(data)/8))
	head = binary.LittleEndian.AppendUint64(head, 1)
	b, err := wire.ParseBatch(append(append(head, make([]byte, 24)...), data...))
	if err != nil {
		t.Fatal(err)
	}
	rec.Take(b)
	th.NewPath(0, 0, 1)
	th.NewPath(0, 0, 1)
	if !th.oracle.memory.IsTooLarge() {
		t.Fatal("the stretch is not large")
	}
	s := &wpp.Snapshot{Images: make([]wpp.Image, 1), Symbols: []wpp.Symbol{{Blocks: []int{0}}},
		Routines: []wpp.Routine{{Blocks: []wpp.Block{{Addr: 0x1000, Lengths: lengths}}}},
		Threads:  []wpp.Thread{{TID: 1, Grammar: wpp.FromSequitur(g)}},
		Sections: rec.Sections([]*Thread{th})()}
	segments, err := wet.Segments(s, 0)
	if err != nil {
		t.Fatal(err)
	}
	seen := unknown{}
	for i := range segments {
		if err := segments[i].Replay(0, ^uint64(0), &seen); err != nil {
			t.Fatal(err)
		}
	}
	if seen.n != 2*len(insns) || seen.known > 0 {
		t.Errorf("of %d instructions, %d, %d have values that are known", 2*len(insns), seen.n,
			seen.known)
	}
}

// An unknown counts instructions, and those that have written what is known.
type unknown struct{ n, known int }

func (u *unknown) Executed(e *wet.Executed) error {
	u.n++
	for _, r := range e.Written {
		if r.Known != machine.Unknown {
			u.known++
		}
	}
	return nil
}
