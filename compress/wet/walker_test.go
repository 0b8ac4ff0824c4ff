package wet

import (
	"fmt"
	"math/bits"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"wpptrace/compress/ops"
	"wpptrace/compress/sequitur"
	"wpptrace/compress/wet/machine"
	"wpptrace/compress/wet/memory"
	"wpptrace/compress/wpp"
)

func reg(n, size uint8) machine.Operand {
	return machine.Operand{Class: machine.General, Reg: n, Size: size}
}

func at(base uint8, disp int64, size uint8) machine.Operand {
	return machine.Operand{Class: machine.Mem, Reg: base, Index: machine.Zero,
		Segment: machine.Zero, Disp: disp, Size: size}
}

var imm = machine.Operand{Class: machine.Immediate, Size: 8}

// blocks are a routine: it loads, stores, and calls what is not traced between the first two
// blocks; the third one jumps back to itself.
func blocks() []Block {
	list := []Block{
		{Insns: []machine.Insn{
			{Op: machine.Push, Len: 1, Size: 8, Src: reg(machine.RBX, 8)},
			{Op: machine.Mov, Len: 3, Size: 8, Dst: reg(machine.RBX, 8), Src: reg(machine.RDI, 8)},
			{Op: machine.Mov, Len: 4, Size: 4, Dst: reg(machine.RAX, 4),
				Src: at(machine.RBX, 8, 4)},
			{Op: machine.Mov, Len: 4, Size: 8, Dst: at(machine.RSP, 16, 8),
				Src: reg(machine.RAX, 8)},
			{Op: machine.Call, Len: 5, Size: 8, Src: imm, Imm: 0x5000},
		}, Frame: []int{3}, Sites: []Site{{Insn: 0}, {Insn: 2}}},
		{Insns: []machine.Insn{
			{Op: machine.Add, Len: 4, Size: 8, Dst: at(machine.RBX, 16, 8),
				Src: reg(machine.RAX, 8)},
			{Op: machine.Mov, Len: 4, Size: 8, Dst: reg(machine.RCX, 8),
				Src: at(machine.RSP, 16, 8)},
			{Op: machine.Mov, Len: 4, Size: 8, Dst: at(machine.RCX, 0, 8),
				Src: reg(machine.RDX, 8)},
			{Op: machine.NoOp, Len: 1},
		}, Sites: []Site{{Insn: 3}}},
		{Insns: []machine.Insn{
			{Op: machine.Inc, Len: 3, Size: 4, Dst: reg(machine.RCX, 4)},
			{Op: machine.Mov, Len: 4, Size: 1, Dst: reg(machine.RDX, 1),
				Src: at(machine.RSI, 0, 1)},
			{Op: machine.Cmp, Len: 4, Size: 4, Dst: reg(machine.RCX, 4), Src: imm, Imm: 3},
			{Op: machine.JumpIf, Len: 2, Size: 8, Condition: 5, Imm: -13},
		}, Sites: []Site{{Insn: 3}}},
	}
	addr := uint64(0x1000)
	for i := range list {
		list[i].Addr = addr
		for j := range list[i].Insns {
			addr += uint64(list[i].Insns[j].Len)
		}
	}
	return list
}

// symbols are the paths and marks that tests have.
var symbols = []wpp.Symbol{
	{Start: ops.StartEntry, End: ops.EndCall, Blocks: []int{0}},
	{Start: ops.StartCall, End: ops.EndLoop, Blocks: []int{1, 2}},
	{Start: ops.StartLoop, End: ops.EndLoop, Blocks: []int{2}},
	{Start: ops.StartResume, End: ops.EndCut, Blocks: []int{0}, Skip: 1, Cut: 2},
	{IsMark: true, Mark: ops.Gap},
}

// snapshot is one of a thread that ran some symbols, with sections.
func snapshot(stream []int, sections ...*wpp.Section) *wpp.Snapshot {
	g := sequitur.New()
	for _, s := range stream {
		g.Append(uint32(s))
	}
	s := &wpp.Snapshot{Images: make([]wpp.Image, 1), Symbols: symbols, Sections: sections,
		Threads: []wpp.Thread{{TID: 1, Grammar: wpp.FromSequitur(g)}}}
	r := wpp.Routine{}
	for _, b := range blocks() {
		x := wpp.Block{Addr: b.Addr}
		for _, in := range b.Insns {
			x.Lengths = append(x.Lengths, in.Len)
		}
		r.Blocks = append(r.Blocks, x)
	}
	s.Routines = []wpp.Routine{r}
	return s
}

// A record is what was executed, as text; lost: in a stretch that was taken back.
type record struct {
	text []string
	from int // where the stretch begins
}

func (r *record) Executed(e *Executed) error {
	text := fmt.Sprintf("%d %x %v", e.Symbol, e.Addr, e.External)
	for _, w := range e.Written {
		if w.Known == machine.Unknown {
			w.Value = 0
		}
		text += fmt.Sprintf(" %v", w)
	}
	for i := range e.Accesses {
		a := e.Accesses[i]
		if a.At == machine.Unknown {
			a.Addr = 0
		}
		if a.Known == machine.Unknown {
			a.Bytes = [64]byte{}
		}
		text += fmt.Sprintf(" %x:%d %v %d %d %x", a.Addr, a.Size, a.Write, a.At, a.Known,
			a.Bytes[:min(a.Size, 64)])
	}
	r.text = append(r.text, text)
	return nil
}

// A whim is an oracle that says whatever is drawn, and writes the log.
type whim struct {
	t      *rapid.T
	log    Log
	walker *Walker
	memory *memory.Memory
	record *record
	ended  []*Log // segments
	era    byte   // what memory holds depends on it
	doubts bool
}

func (o *whim) Begin(at Place) (lost bool, err error) {
	o.log.Begin(at, &Entry{})
	o.record.from = len(o.record.text)
	return false, nil
}

func (o *whim) Site(at Place, _ int, m *machine.Machine) (lost bool, err error) {
	var e Entry
	if rapid.IntRange(0, 4).Draw(o.t, "taken back") == 0 {
		o.log.Lose()
		o.memory.Rollback()
		for i := o.record.from; i < len(o.record.text); i++ {
			o.record.text[i] = "lost"
		}
		e.Forget, e.Unchecked = true, true
	}
	if rapid.Bool().Draw(o.t, "registers") {
		e.Registers = rapid.Uint16().Draw(o.t, "which")
		for r := e.Registers; r != 0; r &= r - 1 {
			e.Values[bits.TrailingZeros16(r)] = o.value()
		}
	}
	if rapid.IntRange(0, 3).Draw(o.t, "cut") == 0 {
		o.ended = append(o.ended, o.log.Cut(o.walker))
		o.era += rapid.SampledFrom([]byte{0, 0, 1, 255}).Draw(o.t, "era")
		o.memory.Begin()
		o.memory.BeginSegment()
	}
	e.HasFlags, e.Flags = rapid.Bool().Draw(o.t, "flags"), 0x15
	e.HasFS, e.FS = rapid.Bool().Draw(o.t, "fs"), 7
	e.Unchecked = e.Unchecked || rapid.Bool().Draw(o.t, "unchecked")
	e.Apply(m)
	o.log.Begin(at, &e)
	o.record.from = len(o.record.text)
	return false, nil
}

// value is one of few addresses, so that what is stored is loaded again.
func (o *whim) value() uint64 {
	return 0x8000 + 4*uint64(rapid.IntRange(0, 8).Draw(o.t, "value"))
}

func (o *whim) Load(l *Load) (k machine.Knowledge, isNew bool) {
	read := make([]byte, len(l.Bytes))
	copy(read, l.Bytes)
	k = l.Knowledge(len(read))
	switch rapid.IntRange(0, 7).Draw(o.t, "load") {
	case 3, 4, 5, 6: // mostly as in other segments
		for i := range read {
			read[i] = byte(l.Addr) + byte(i) + o.era
		}
		k = machine.Confirmed
	case 0:
		read[0], k = 3, machine.Confirmed
	case 1:
		if k != machine.Unknown {
			k = machine.Unconfirmed
		}
	case 2:
		read[0]++
		k = machine.Unconfirmed
	}
	isNew = o.log.Load(l, read, k)
	copy(l.Bytes, read)
	return k, isNew
}

func (o *whim) Resync(at Place, m *machine.Machine) (begins, lost bool, err error) {
	v := Recovery{Registers: rapid.Uint16().Draw(o.t, "known"), Confirmed: 0x18}
	v.Unsure = v.Registers & rapid.Uint16().Draw(o.t, "unsure")
	v.Pending = rapid.Uint16().Draw(o.t, "pending") &^ v.Registers
	for r := v.Registers; r != 0; r &= r - 1 {
		v.Values[bits.TrailingZeros16(r)] = o.value()
	}
	v.Apply(m)
	o.log.Recover(at, &v)
	o.record.from = len(o.record.text)
	return true, false, nil
}

func (o *whim) Result(at Place, unknown uint16, m *machine.Machine) {
	v := Recovery{Registers: unknown & rapid.Uint16().Draw(o.t, "results")}
	v.Unsure = v.Registers & rapid.Uint16().Draw(o.t, "unsure")
	for r := v.Registers; r != 0; r &= r - 1 {
		v.Values[bits.TrailingZeros16(r)] = o.value()
	}
	v.Apply(m)
	o.log.Result(at, &v)
}

func (o *whim) Used(at Place, registers uint16, m *machine.Machine) {
	for r := registers; r != 0; r &= r - 1 {
		n, v := bits.TrailingZeros16(r), o.value()
		o.log.Used(at, n, v)
		m.SetGeneral(n, v, machine.Confirmed)
	}
}

func (o *whim) Leaves(machine.Outcome, *machine.Machine) {}
func (o *whim) Doubt()                                   {}
func (o *whim) Disagrees()                               { o.doubts = true }

// TestReplayIsTheRecording: whatever hits say, and whatever is taken back, a replay tells the same
// of each instruction as the recording.
func TestReplayIsTheRecording(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		code := NewCode(func(int) *Routine { return &Routine{Blocks: blocks()} })
		code.Place(0, 0x40000)
		want := &record{}
		o := &whim{t: t, record: want}
		w := NewWalker(code, o, want)
		o.walker, o.memory = w, w.Memory()
		o.memory.Keep()
		stream := rapid.SliceOfN(rapid.IntRange(0, len(symbols)-1), 1, 20).Draw(t, "stream")
		if err := w.Begin(); err != nil {
			t.Fatal(err)
		}
		for _, n := range stream {
			if err := walk(w, n); err != nil {
				t.Fatal(err)
			}
			ran(&o.log, n)
		}
		if o.doubts {
			t.Skip("a recording takes back what does not agree with the path")
		}
		sections := []*wpp.Section{code.Section()}
		most := rapid.IntRange(1, MostInGroup).Draw(t, "group")
		for group := range slices.Chunk(append(o.ended, &o.log), most) {
			e := Encode(group)
			sections = append(sections, e.Sections(0)...)
		}
		s := snapshot(stream, sections...)
		got, err := replay(s)
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != len(want.text) {
			t.Fatalf("%d instructions, want %d", len(got), len(want.text))
		}
		for i := range got {
			if want.text[i] != "lost" && got[i] != want.text[i] {
				t.Fatalf("instruction %d: %s", i, cmp.Diff(want.text[i], got[i]))
			}
		}
	})
}

// walk walks along a symbol.
func walk(w *Walker, symbol int) error {
	s := &symbols[symbol]
	if s.IsMark {
		return w.Mark(s.Mark, s.N)
	}
	return w.Path(&Path{s.Routine, s.Start, s.Blocks, s.Skip, s.Cut})
}

// ran has a log know that a symbol has been walked.
func ran(l *Log, symbol int) {
	l.Walked()
	if !symbols[symbol].IsMark {
		l.Ran(uint32(symbol), 1)
	}
}

func replay(s *wpp.Snapshot) ([]string, error) {
	segments, err := Segments(s, 0)
	r := &record{}
	for i := range segments {
		if err == nil {
			err = segments[i].Replay(0, ^uint64(0), r)
		}
	}
	return r.text, err
}
