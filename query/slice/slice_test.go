package slice

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"wpptrace/compress/wet"
	"wpptrace/compress/wet/machine"
)

// Instructions of drawn traces: what they are is less than what they access.
var (
	move  = machine.Insn{Op: machine.Mov, Len: 1, Size: 8}
	jump  = machine.Insn{Op: machine.JumpIf, Len: 1}
	calls = machine.Insn{Op: machine.Call, Len: 1}
	rets  = machine.Insn{Op: machine.Return, Len: 1}
)

func register(n int) machine.Operand {
	return machine.Operand{Class: machine.General, Reg: uint8(n), Size: 8}
}

// drawTrace draws instructions that write a register, flags or some bytes of memory, and use some.
func drawTrace(t *rapid.T, n int) []wet.Executed {
	var trace []wet.Executed
	for i := range rapid.IntRange(1, n).Draw(t, "length") {
		in := move
		in.Src, in.Dst = register(rapid.IntRange(0, 5).Draw(t, "source")), machine.Operand{}
		e := wet.Executed{Addr: uint64(rapid.IntRange(0, 9).Draw(t, "address")), Code: &in}
		access := func(write bool) {
			a := machine.Access{Addr: uint64(4090 + rapid.IntRange(0, 12).Draw(t, "at")),
				Size:  rapid.SampledFrom([]int{1, 2, 4, 8}).Draw(t, "size"),
				Write: write, At: machine.Confirmed}
			if write {
				a.Known = machine.Confirmed
				a.Bytes[0] = byte(i)
			}
			e.Accesses = append(e.Accesses, a)
		}
		for _, what := range rapid.SliceOfNDistinct(rapid.IntRange(0, 5), 1, 3,
			rapid.ID).Draw(t, "what") {
			switch what {
			case 0:
				e.Written = append(e.Written, wet.Register{
					Number: uint8(rapid.IntRange(0, 5).Draw(t, "written"))})
			case 1:
				e.FlagsWritten = rapid.SampledFrom([]uint8{1, 0x3f, 0x3e}).Draw(t, "flags")
			case 2:
				e.FlagsUsed = rapid.SampledFrom([]uint8{1, 8, 9}).Draw(t, "flags used")
			case 3:
				access(false)
			case 4:
				access(true)
			case 5:
				e.External = rapid.IntRange(0, 9).Draw(t, "external") == 0
			}
		}
		trace = append(trace, e)
	}
	return trace
}

// location is something that instructions write and use.
type location struct {
	kind string
	n    uint64
}

func usesOf(e *wet.Executed) (list []location) {
	list = append(list, location{"register", uint64(e.Code.Src.Reg)})
	for i := range 8 {
		if e.FlagsUsed>>i&1 == 1 {
			list = append(list, location{"flag", uint64(i)})
		}
	}
	return append(list, memoryOf(e, false)...)
}

func memoryOf(e *wet.Executed, write bool) (list []location) {
	for _, a := range e.Accesses {
		for i := range a.Size {
			if a.Write == write {
				list = append(list, location{"memory", a.Addr + uint64(i)})
			}
		}
	}
	return list
}

func writesOf(e *wet.Executed) (list []location) {
	for _, r := range e.Written {
		list = append(list, location{"register", uint64(r.Number)})
	}
	for i := range 8 {
		if e.FlagsWritten>>i&1 == 1 {
			list = append(list, location{"flag", uint64(i)})
		}
	}
	return append(list, memoryOf(e, true)...)
}

// dataOf is what an instance depends on by data, from the definition: the last one before it that
// wrote what it uses, unless external code lies between and it is no memory.
func dataOf(trace []wet.Executed, i int) (list []int) {
	for _, used := range usesOf(&trace[i]) {
		for j := i; j > 0; j-- {
			if trace[j].External && used.kind != "memory" {
				break
			}
			if slices.Contains(writesOf(&trace[j-1]), used) {
				list = append(list, j-1)
				break
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func build(t interface{ Fatal(...any) }, flows func(int) Flow, trace []wet.Executed) *Graph {
	b := NewBuilder(flows)
	for i := range trace {
		if err := b.Executed(&trace[i]); err != nil {
			t.Fatal(err)
		}
	}
	return b.Graph()
}

func dependences(g *Graph, i int, by Kinds) (list []int) {
	for on, kind := range g.DependsOn(i) {
		if kind == by {
			list = append(list, on)
		}
	}
	slices.Sort(list)
	return list
}

// reach is what is reached from one by steps: brute force.
func reach(n, from int, steps func(i int) []int) []int {
	in := map[int]bool{from: true}
	for grown := true; grown; {
		grown = false
		for i := range n {
			for _, to := range steps(i) {
				if in[i] && !in[to] {
					in[to], grown = true, true
				}
			}
		}
	}
	var list []int
	for i := range n {
		if in[i] {
			list = append(list, i)
		}
	}
	return list
}

func noFlow(int) Flow { return nil }

// Slices of drawn traces are what brute force finds by the definition.
func TestSliceIsBruteForce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		trace := drawTrace(t, 60)
		// what memory holds is not compared here: nothing is known of what is read
		g := build(t, noFlow, trace)
		want := make([][]int, len(trace))
		users := make([][]int, len(trace))
		for i := range trace {
			want[i] = dataOf(trace, i)
			if got := dependences(g, i, Data); !slices.Equal(got, want[i]) {
				t.Fatalf("%d depends on %d, want %d", i, got, want[i])
			}
			for _, on := range want[i] {
				users[on] = append(users[on], i)
			}
		}
		from := rapid.IntRange(0, len(trace)-1).Draw(t, "from")
		if got, want := g.Backward(Data, from), reach(len(trace), from,
			func(i int) []int { return want[i] }); !slices.Equal(got, want) {
			t.Fatalf("backward from %d: %d, want %d", from, got, want)
		}
		if got, want := g.Forward(Data, from), reach(len(trace), from,
			func(i int) []int { return users[i] }); !slices.Equal(got, want) {
			t.Fatalf("forward from %d: %d, want %d", from, got, want)
		}
	})
}

// drawFlow draws where control may go in a routine.
func drawFlow(t *rapid.T, blocks int) Flow {
	f := make(Flow, blocks)
	for i := range f {
		f[i] = rapid.SliceOfNDistinct(rapid.IntRange(Out, blocks-1), 1, 3, rapid.ID).Draw(t, "to")
	}
	return f
}

// leadsOut reports whether a way leads out from a block that does not come by another.
func (f Flow) leadsOut(from, without int) bool {
	seen := make([]bool, len(f))
	var walk func(block int) bool
	walk = func(block int) bool {
		if block == Out {
			return true
		}
		if block == without || seen[block] {
			return false
		}
		seen[block] = true
		return slices.ContainsFunc(f[block], walk)
	}
	return walk(from)
}

func TestPostDominators(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawFlow(t, rapid.IntRange(1, 8).Draw(t, "blocks"))
		got := f.postDominators()
		for block := range f {
			// the post-dominators, and of these the one that all others post-dominate
			var all []int
			for other := range f {
				if other != block && f.leadsOut(block, -2) && !f.leadsOut(block, other) {
					all = append(all, other)
				}
			}
			want := Out
			for _, x := range all {
				nearest := true
				for _, y := range all {
					nearest = nearest && (x == y || !f.leadsOut(x, y))
				}
				if nearest {
					want = x
				}
			}
			if got[block] != want {
				t.Fatalf("%v: the ways of %d meet at %d, want %d", f, block, got[block], want)
			}
		}
	})
}

// A walk draws a run of routines that call each other, and what each instance depends on by
// control, from the definition.
type walk struct {
	t     *rapid.T
	flows []Flow
	trace []wet.Executed
	want  []int // -1: nothing
}

func (w *walk) step(routine, block, insn, want int, code *machine.Insn) int {
	w.trace = append(w.trace, wet.Executed{
		Place: wet.Place{Routine: routine, Block: block, Insn: insn},
		Addr:  uint64(routine*1000 + block*10 + insn), Code: code})
	w.want = append(w.want, want)
	return len(w.trace) - 1
}

// routine runs a routine: a block is an instruction, perhaps a call, and one that ends it.
func (w *walk) routine(number, call, depth int) {
	f := w.flows[number]
	meet := f.postDominators()
	type open struct{ by, until int }
	var passed []open // branches
	for block, n := 0, 0; block != Out; n++ {
		// the last branch whose ways have not met since
		by := call
		for i := range passed {
			if passed[i].until == block {
				passed[i].until = -2
			}
		}
		for _, x := range passed {
			if x.until != -2 {
				by = x.by
			}
		}
		w.step(number, block, 0, by, &move)
		if depth > 0 && rapid.IntRange(0, 3).Draw(w.t, "call") == 0 {
			at := w.step(number, block, 1, by, &calls)
			w.routine(rapid.IntRange(0, len(w.flows)-1).Draw(w.t, "callee"), at, depth-1)
			w.step(number, block, 2, by, &move)
		} else {
			w.step(number, block, 1, by, &move)
			w.step(number, block, 2, by, &move)
		}
		to := rapid.SampledFrom(f[block]).Draw(w.t, "next")
		if n > 10 {
			to = Out // where it may not go, but an exit does
		}
		code := &jump
		if to == Out {
			code = &rets
		}
		last := w.step(number, block, 3, by, code)
		if len(f[block]) > 1 {
			passed = append(passed, open{last, meet[block]})
		}
		block = to
	}
}

// What decided that an instruction is executed is what the definition says, also where routines
// call each other and themselves.
func TestControl(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &walk{t: t}
		for range rapid.IntRange(1, 3).Draw(t, "routines") {
			w.flows = append(w.flows, drawFlow(t, rapid.IntRange(1, 5).Draw(t, "blocks")))
		}
		w.routine(0, -1, 3)
		g := build(t, func(n int) Flow { return w.flows[n] }, w.trace)
		for i := range w.trace {
			var want []int
			if w.want[i] >= 0 {
				want = []int{w.want[i]}
			}
			if got := dependences(g, i, Control); !slices.Equal(got, want) {
				t.Fatalf("%d of %+v depends on %d, want %d", i, w.flows, got, want)
			}
		}
	})
}

// A call of external code used the registers that pass arguments, and made what it may change.
func TestThroughExternalCode(t *testing.T) {
	at := func(addr uint64, code *machine.Insn, writes ...uint8) wet.Executed {
		e := wet.Executed{Addr: addr, Code: code}
		for _, r := range writes {
			e.Written = append(e.Written, wet.Register{Number: r})
		}
		return e
	}
	use := func(n int) *machine.Insn {
		return &machine.Insn{Op: machine.Mov, Len: 1, Size: 8, Src: register(n),
			Dst: register(12)}
	}
	trace := []wet.Executed{
		at(0, &machine.Insn{Op: machine.NoOp, Len: 1}, machine.RDI),
		at(1, &machine.Insn{Op: machine.NoOp, Len: 1}, machine.RBX),
		at(2, &machine.Insn{Op: machine.NoOp, Len: 1}, machine.RAX),
		at(3, &calls),
		at(4, use(machine.RAX), 12),
		at(5, use(machine.RBX), 12),
		at(100, use(machine.RBX), 12),
	}
	trace[4].External, trace[6].External = true, true
	g := build(t, noFlow, trace)
	for i, want := range map[int][]int{3: {0}, 4: {3}, 5: {1}, 6: nil} {
		if got := dependences(g, i, Data); !slices.Equal(got, want) {
			t.Errorf("%d depends on %d, want %d", i, got, want)
		}
	}
	if got := g.Backward(Data, 4); !slices.Equal(got, []int{0, 3, 4}) {
		t.Errorf("backward from the use of its result: %d", got)
	}
}

// Code that is not traced may call back as often as it likes: there are no more frames for that,
// and what it returns to goes on where it called.
func TestCallsBack(t *testing.T) {
	b := NewBuilder(noFlow)
	run := func(routine int, addr uint64, external bool, code *machine.Insn) {
		t.Helper()
		e := wet.Executed{Place: wet.Place{Routine: routine}, Addr: addr, Code: code,
			External: external}
		if err := b.Executed(&e); err != nil {
			t.Fatal(err)
		}
	}
	jumps := machine.Insn{Op: machine.Jump, Len: 1}
	run(1, 100, false, &move)
	run(1, 101, false, &calls)
	for i := range 1000 {
		run(2, 200, true, &calls) // of traced code
		run(3, 300, false, &rets)
		leave := &rets
		if i%3 == 1 {
			leave = &jumps
		}
		run(2, 201, false, leave)
	}
	if n := len(b.frames.stack); n > 3 {
		t.Errorf("%d frames", n)
	}
	run(1, 102, true, &move)
	if n := len(b.frames.stack); n != 1 || b.frames.stack[0].routine != 1 {
		t.Errorf("%d frames once it has returned, the first of %+v", n, b.frames.stack[0])
	}
}

// What is read and is not what was written there, others have written.
func TestWrittenByOthers(t *testing.T) {
	access := func(write bool, value byte) wet.Executed {
		a := machine.Access{Addr: 0x1000, Size: 1, Write: write, At: machine.Confirmed,
			Known: machine.Confirmed}
		a.Bytes[0] = value
		return wet.Executed{Code: &machine.Insn{Op: machine.NoOp, Len: 1},
			Accesses: []machine.Access{a}}
	}
	g := build(t, noFlow, []wet.Executed{access(true, 1), access(false, 1), access(false, 2),
		access(false, 2), access(true, 3), access(false, 3)})
	for i, want := range map[int][]int{1: {0}, 2: nil, 3: nil, 5: {4}} {
		if got := dependences(g, i, Data); !slices.Equal(got, want) {
			t.Errorf("%d depends on %d, want %d", i, got, want)
		}
	}
}

// What is read and is not known depends on what the thread wrote, unless others wrote since.
func TestDoubtful(t *testing.T) {
	access := func(write bool, known machine.Knowledge) wet.Executed {
		return wet.Executed{Code: &machine.Insn{Op: machine.NoOp, Len: 1},
			Accesses: []machine.Access{{Addr: 0x1000, Size: 4, Write: write,
				At: machine.Confirmed, Known: known}}}
	}
	for _, stored := range []machine.Knowledge{machine.Confirmed, machine.Unknown} {
		g := build(t, noFlow, []wet.Executed{access(true, stored), access(false, machine.Unknown)})
		if got := dependences(g, 1, Data); !slices.Equal(got, []int{0}) {
			t.Errorf("%v: it depends on %d", stored, got)
		}
		if is := stored != machine.Unknown; (g.Doubtful == 1) != is {
			t.Errorf("%v: %d are doubtful", stored, g.Doubtful)
		}
	}
}

func TestUnsure(t *testing.T) {
	e := wet.Executed{Code: &machine.Insn{Op: machine.Opaque, Len: 1},
		Accesses: []machine.Access{{Write: true}}}
	if g := build(t, noFlow, []wet.Executed{e}); g.Unsure != 1 || g.Opaque != 1 {
		t.Errorf("%d unsure, %d opaque", g.Unsure, g.Opaque)
	}
}

// A loop of 10 million instances: each depends on three.
func BenchmarkSlice(b *testing.B) {
	const instances = 10_000_000
	add := machine.Insn{Op: machine.Add, Len: 3, Size: 8, Dst: register(0), Src: register(1)}
	store := machine.Insn{Op: machine.Mov, Len: 3, Size: 8, Src: register(0),
		Dst: machine.Operand{Class: machine.Mem, Reg: 2, Size: 8}}
	load := machine.Insn{Op: machine.Mov, Len: 3, Size: 8, Dst: register(1),
		Src: machine.Operand{Class: machine.Mem, Reg: 2, Size: 8}}
	round := []wet.Executed{
		{Addr: 0, Code: &add, Written: []wet.Register{{Number: 0}}, FlagsWritten: 0x3f},
		{Addr: 3, Code: &store,
			Accesses: []machine.Access{{Size: 8, Write: true, At: 3, Known: 3}}},
		{Addr: 6, Code: &load, Written: []wet.Register{{Number: 1}},
			Accesses: []machine.Access{{Size: 8, At: 3, Known: 3}}},
		{Addr: 9, Code: &jump, FlagsUsed: 4},
	}
	for i := range round {
		round[i].Insn = i
	}
	flow := func(int) Flow { return Flow{{0, Out}} }
	for b.Loop() {
		bd := NewBuilder(flow)
		for i := range instances {
			e := &round[i&3]
			if len(e.Accesses) > 0 {
				e.Accesses[0].Addr = uint64(i / 4 % 100_000 * 8)
			}
			if err := bd.Executed(e); err != nil {
				b.Fatal(err)
			}
		}
		g := bd.Graph()
		b.ReportMetric(float64(len(g.Backward(Data|Control, instances-1))), "instances")
		b.ReportMetric(float64(g.edges.bytes()+4*g.Len())/instances, "bytes/instance")
	}
}

// TestManyDependences: an instruction that copies what each of many others has stored depends on
// each of them, once, and that takes time in proportion.
func TestManyDependences(t *testing.T) {
	const n = 1 << 17
	store := func(addr uint64, size int) wet.Executed {
		return wet.Executed{Code: &move, Accesses: []machine.Access{{Addr: addr, Size: size,
			Write: true, At: machine.Confirmed}}}
	}
	var trace []wet.Executed
	for i := range uint64(n) {
		trace = append(trace, store(2*i, 2))
	}
	copies := store(4*n, 2*n)
	copies.Accesses = append(copies.Accesses, machine.Access{Size: 2 * n, At: machine.Confirmed})
	trace = append(trace, copies)
	g := build(t, noFlow, trace)
	next := 0
	for on := range g.DependsOn(n) {
		if on != next {
			t.Fatalf("dependence %d is on %d", next, on)
		}
		next++
	}
	if next != n {
		t.Errorf("%d dependences on %d stores", next, n)
	}
}
