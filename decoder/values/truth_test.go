package values_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wpptrace/bpf/wire"
	"wpptrace/compress/ops"
	"wpptrace/compress/sequitur"
	"wpptrace/compress/wet"
	"wpptrace/compress/wet/machine"
	"wpptrace/compress/wpp"
	"wpptrace/decoder"
	"wpptrace/decoder/code"
	"wpptrace/decoder/values"
	"wpptrace/kernel-tests/truth"
	"wpptrace/kernel-tests/truth/states"
	"wpptrace/loader/cfg/recovery"
	"wpptrace/loader/image"
	"wpptrace/loader/loads"
	"wpptrace/loader/plan"
	"wpptrace/loader/plan/planner"
	"wpptrace/loader/x86"
)

// A run is a recorded truth, with what hits would have seen of it, and the paths that it took.
type run struct {
	sample  *states.Sample
	plan    *loads.Plan
	steps   []truth.Step
	memory  map[uint64][]byteAt // by address, in their order
	place   map[uint64]place    // by link-time address of an instruction
	paths   pathTable
	symbols []symbol
	states  []wire.State
	segment uint64 // instructions of a segment; 0: as usual
	whole   bool   // each hit shows all registers
}

type place struct{ routine, block, insn int }

// A byteAt is what a byte was, at a step.
type byteAt struct {
	step  int
	value byte
	read  bool
}

// A symbol is a path's number.
type symbol struct {
	routine int
	number  uint64
}

// A pathTable has the paths of a run: by routine, then by number.
type pathTable map[int][]decoder.Partial

func (p pathTable) Path(routine int, number uint64) (decoder.Partial, error) {
	return p[routine][number], nil
}

func load(t testing.TB, name string) *run {
	t.Helper()
	s, err := states.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	im, err := image.Open(bytes.NewReader(s.Executable), int64(len(s.Executable)), name)
	if err != nil {
		t.Fatal(err)
	}
	program, err := recovery.Recover(im)
	if err != nil {
		t.Fatal(err)
	}
	p, err := planner.Make(program, planner.Options{EveryRound: true})
	if err != nil {
		t.Fatal(err)
	}
	l, err := loads.Make(p, loads.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := &run{sample: s, plan: l, steps: s.Trace.Threads[0].Values,
		memory: map[uint64][]byteAt{}, place: map[uint64]place{}, paths: pathTable{}}
	for id, pr := range p.Routines {
		if !pr.Traced() {
			continue
		}
		for b := range pr.Blocks {
			for i := range pr.Blocks[b].Insns {
				r.place[pr.Blocks[b].Insns[i].Addr] = place{id, b, i}
			}
		}
	}
	r.remember()
	r.follow()
	r.hit()
	return r
}

// remember notes what memory held.
func (r *run) remember() {
	for i := range r.steps {
		for _, m := range r.steps[i].Reads {
			for k, b := range m.Bytes {
				a := m.Addr + uint64(k)
				r.memory[a] = append(r.memory[a], byteAt{2 * i, b, true})
			}
		}
		for _, m := range r.steps[i].Writes {
			for k, b := range m.Bytes {
				a := m.Addr + uint64(k)
				r.memory[a] = append(r.memory[a], byteAt{2*i + 1, b, false})
			}
		}
	}
}

// at is what a byte held before a step.
func (r *run) at(addr uint64, step int) (byte, bool) {
	list := r.memory[addr]
	i := sort.Search(len(list), func(i int) bool { return list[i].step >= 2*step })
	if i < len(list) && list[i].read {
		return list[i].value, true
	}
	if i > 0 {
		return list[i-1].value, true
	}
	return 0, false
}

// follow cuts the run into paths: at calls, returns, jumps to earlier blocks and where it leaves
// traced routines.
func (r *run) follow() {
	var blocks []int
	var in place
	skip, start := 0, ops.StartEntry
	numbers := map[string]uint64{}
	flush := func(insns int) {
		if len(blocks) == 0 {
			return
		}
		p := decoder.Partial{Start: start, Blocks: blocks, Skip: skip}
		last := &r.plan.Base.Routines[in.routine].Blocks[blocks[len(blocks)-1]]
		if len(last.Insns) != insns {
			p.Insns = insns
		}
		key := binary.AppendUvarint(nil, uint64(in.routine))
		for _, n := range append([]int{int(p.Start), p.Skip, p.Insns}, blocks...) {
			key = binary.AppendUvarint(key, uint64(n))
		}
		n, ok := numbers[string(key)]
		if !ok {
			n = uint64(len(r.paths[in.routine]))
			numbers[string(key)] = n
			r.paths[in.routine] = append(r.paths[in.routine], p)
		}
		r.symbols = append(r.symbols, symbol{in.routine, n})
		blocks = nil
	}
	last := place{insn: -1}
	for i := range r.steps {
		at, ok := r.place[r.steps[i].PC]
		if !ok {
			flush(last.insn + 1)
			last = place{insn: -1}
			continue
		}
		switch {
		case at.insn > 0 && at.routine == last.routine && at.block == last.block &&
			at.insn == last.insn+1 && len(blocks) > 0:
		case len(blocks) > 0 && at.insn == 0 && at.routine == last.routine &&
			r.inside(last, at.block):
			blocks = append(blocks, at.block)
		default:
			loop := len(blocks) > 0 && at.insn == 0 && at.routine == last.routine &&
				r.leads(last, at.block)
			flush(last.insn + 1)
			blocks, in, skip, start = []int{at.block}, at, at.insn, ops.StartCall
			if loop {
				start = ops.StartLoop
			}
		}
		last = at
	}
	flush(last.insn + 1)
}

// leads reports whether a jump leads from the end of a block to another one.
func (r *run) leads(from place, to int) bool {
	b := &r.plan.Base.Routines[from.routine].Blocks[from.block]
	if from.insn != len(b.Insns)-1 ||
		b.Insns[from.insn].Kind == x86.Call || b.Insns[from.insn].Kind == x86.CallInd {
		return false
	}
	for _, n := range b.Succ {
		if n == to {
			return true
		}
	}
	return false
}

func (r *run) inside(from place, to int) bool { return r.leads(from, to) && to > from.block }

// hit notes what hits would have seen, as the kernel's part does.
func (r *run) hit() {
	var regs truth.Replay
	sites := map[uint64]int{}
	for i := range r.plan.Base.Sites {
		sites[r.plan.Base.Sites[i].Addr] = i
	}
	whole, ordinal := true, uint64(0)
	for i := range r.steps {
		step := &r.steps[i]
		regs.Before(step)
		if n, ok := sites[step.PC]; ok {
			ordinal++
			s := r.state(n, i, &regs, whole)
			s.Ordinal = ordinal
			whole = s.Left || r.whole
			r.states = append(r.states, s)
		}
		regs.After(step)
	}
}

func (r *run) state(site, step int, regs *truth.Replay, whole bool) wire.State {
	s := wire.State{Site: site, Whole: whole, Flags: flagsOf(regs.Registers[truth.Flags])}
	at := &r.plan.Base.Sites[site]
	insn := &r.plan.Base.Routines[at.Routine].Blocks[at.Block].Insns[at.Insn]
	if at.Condition != plan.NoCondition && step+1 < len(r.steps) &&
		r.steps[step+1].PC != insn.End() {
		s.Outcome = 1
	}
	var all [17]uint64
	copy(all[:], regs.Registers[:])
	if whole {
		s.Registers = append(s.Registers, all[:]...)
	}
	m := machine.New()
	for n := range 16 {
		m.SetGeneral(n, all[n], machine.Confirmed)
	}
	s.Hash, _ = m.Hash()
	n := 0
	s.Left = r.plan.Run(site, s.Outcome, whole, &all, 0, &process{r, step}, func(read *loads.Read) {
		if read.Failed {
			s.FailedReads |= 1 << n
		}
		for at := 0; at < read.Size; at += 8 { // zeroes, of one that failed
			s.Words = append(s.Words, binary.LittleEndian.Uint64(read.Bytes[at:]))
		}
		n++
	})
	return s
}

func flagsOf(rflags uint64) (f uint8) {
	for i, bit := range []int{0, 2, 4, 6, 7, 11, 10} {
		f |= uint8(rflags>>bit&1) << i
	}
	return f
}

// A process is that of a run before a step.
type process struct {
	run  *run
	step int
}

func (p *process) Read(addr uint64, to []byte) bool {
	any := false
	for i := range to {
		b, ok := p.run.at(addr+uint64(i), p.step)
		to[i], any = b, any || ok
	}
	return any
}

func (p *process) Continuation(ra uint64) (uint32, bool) {
	step, ok := p.run.plan.After[ra-p.run.sample.Trace.Bias]
	return step, ok
}

func (p *process) Bias(int) uint64 { return p.run.sample.Trace.Bias }

// record records the run, and returns a snapshot of it. others: see values.New.
func (r *run) record(t testing.TB, others values.Others) (*wpp.Snapshot, wet.Counts) {
	t.Helper()
	c := code.Of(r.plan.Base, nil)
	c.Place(0, r.sample.Trace.Bias)
	symbols := &ops.Symbols{}
	rec := values.New(r.plan, c, r.paths, symbols, others)
	if r.segment > 0 {
		rec.SetSegment(r.segment)
	}
	g := sequitur.New()
	th := rec.Thread(1, 1, ops.NewRecorder(symbols, func(sym uint32, times uint64) {
		for range times {
			g.Append(sym)
		}
	}))
	r.feed(t, rec, th)
	return r.snapshot(t, rec, th, symbols, g), rec.Counts()
}

func (r *run) feed(t testing.TB, rec *values.Recorder, th *values.Thread) {
	t.Helper()
	for _, b := range r.batches(t) {
		rec.Take(b)
	}
	for _, s := range r.symbols {
		th.NewPath(s.routine, s.number, 1)
	}
	th.End()
	if err := th.Err(); err != nil {
		t.Fatal(err)
	}
}

func (r *run) batches(t testing.TB) (all []wire.Batch) {
	t.Helper()
	for list := r.states; len(list) > 0; {
		n := min(len(list), 50)
		var data []byte
		for i := range list[:n] {
			data = wire.AppendState(data, &list[i])
		}
		list = list[n:]
		head := binary.LittleEndian.AppendUint32(nil, 1)
		head = binary.LittleEndian.AppendUint32(head, wire.StatesRecord|uint32(len(data)/8))
		head = binary.LittleEndian.AppendUint64(head, 1)
		b, err := wire.ParseBatch(append(append(head, make([]byte, 24)...), data...))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, b)
	}
	return all
}

func (r *run) snapshot(t testing.TB, rec *values.Recorder, th *values.Thread,
	symbols *ops.Symbols, g *sequitur.Grammar) *wpp.Snapshot {
	t.Helper()
	s := &wpp.Snapshot{Images: make([]wpp.Image, 1)}
	ran := map[int]bool{}
	for i := range symbols.Len() {
		m := symbols.Meaning(uint32(i))
		p := r.paths[m.Routine][m.Path]
		x := wpp.Symbol{Routine: m.Routine, Path: m.Path, Start: p.Start, Blocks: p.Blocks,
			Skip: p.Skip}
		if p.Insns > 0 {
			last := p.Blocks[len(p.Blocks)-1]
			x.Cut = len(r.plan.Base.Routines[m.Routine].Blocks[last].Insns) - p.Insns
		}
		s.Symbols = append(s.Symbols, x)
		ran[m.Routine] = true
	}
	for id, pr := range r.plan.Base.Routines {
		w := wpp.Routine{Name: pr.Name, Entry: pr.Addr}
		if ran[id] {
			for _, b := range pr.Blocks {
				x := wpp.Block{Addr: b.Lo}
				for _, q := range b.Insns {
					x.Lengths = append(x.Lengths, q.Len)
				}
				w.Blocks = append(w.Blocks, x)
			}
		}
		s.Routines = append(s.Routines, w)
	}
	s.Threads = []wpp.Thread{{TID: 1, Grammar: wpp.FromSequitur(g)}}
	s.Sections = rec.Sections([]*values.Thread{th})()
	return s
}

// TestLogReplays: what was recorded of a run is replayed from the snapshot alone, and no value that
// is known is another one than single-stepping has found.
func TestLogReplays(t *testing.T) {
	for _, name := range states.Names() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := load(t, name)
			c, counts := r.replayed(t, nil)
			s, _ := r.record(t, nil)
			for _, x := range s.Sections {
				data, err := x.Data()
				if err != nil {
					t.Fatal(err)
				}
				t.Logf("section %d: %d bytes", x.Kind(), len(data))
			}
			t.Logf("%d instructions: values unknown %d, unconfirmed %d, confirmed %d; whole "+
				"instructions known %d; %+v", c.count, c.by[0], c.by[1], c.by[3], c.known, counts)
		})
	}
}

// replayed records the run, and compares the replay with the truth. others: see values.New.
func (r *run) replayed(t *testing.T, others values.Others) (comparison, wet.Counts) {
	t.Helper()
	s, counts := r.record(t, others)
	c := comparison{t: t, run: r}
	c.seek()
	segments, err := wet.Segments(s, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i := range segments {
		if err := segments[i].Replay(0, ^uint64(0), &c); err != nil {
			t.Fatal(err)
		}
	}
	c.segments = len(segments)
	if c.next < len(r.steps) {
		t.Errorf("%d of %d steps", c.next, len(r.steps))
	}
	return c, counts
}

// TestSegments: a run that is cut into segments is replayed one by one, and as much is known of it.
func TestSegments(t *testing.T) {
	for _, name := range states.Names() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := load(t, name)
			whole, _ := r.replayed(t, nil)
			r.segment = 100
			cut, _ := r.replayed(t, nil)
			if cut.segments < 5 || cut.known != whole.known || cut.by != whole.by {
				t.Errorf("in %d segments %d instructions are known, %v, want %d, %v", cut.segments,
					cut.known, cut.by, whole.known, whole.by)
			}
		})
	}
}

// A before compares what registers hold before each instruction of a segment with the truth.
type before struct {
	*comparison
	segment  *wet.Segment
	n        uint64
	compared int
}

func (b *before) Executed(e *wet.Executed) error {
	if b.n++; b.n%each != 0 {
		return b.comparison.Executed(e)
	}
	m, err := b.segment.Before(b.n - 1)
	if err != nil {
		return err
	}
	for n, want := range b.regs.Registers[:16] {
		v, k := m.General(n)
		if k == machine.Unknown {
			continue
		}
		if b.compared++; v != want {
			b.t.Fatalf("before instruction %d at %x register %d is %x (%d), want %x", b.n-1,
				e.Addr, n, v, k, want)
		}
	}
	return b.comparison.Executed(e)
}

// TestBefore asks before one of so many instructions: each time, the segment is replayed up to
// there.
const each = 5

// TestBefore: what is known of registers before any instruction is what the truth has of them.
func TestBefore(t *testing.T) {
	for _, name := range states.Names() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := load(t, name)
			r.segment = 100
			s, _ := r.record(t, nil)
			segments, err := wet.Segments(s, 0)
			if err != nil {
				t.Fatal(err)
			}
			c := comparison{t: t, run: r}
			c.seek()
			compared := 0
			for i := range segments {
				b := before{comparison: &c, segment: &segments[i]}
				if err := segments[i].Replay(0, ^uint64(0), &b); err != nil {
					t.Fatal(err)
				}
				compared += b.compared
			}
			t.Logf("%d registers before %d instructions", compared, c.count)
			if compared < 8*c.count/each {
				t.Errorf("only %d registers before %d instructions are known", compared, c.count)
			}
		})
	}
}

// TestSegmentsOfWholeStates: a run of which each hit shows all registers is cut, too.
func TestSegmentsOfWholeStates(t *testing.T) {
	r := load(t, "values_one")
	r.states, r.whole, r.segment = nil, true, 100
	r.hit()
	if cut, _ := r.replayed(t, nil); cut.segments < 5 {
		t.Errorf("there are %d segments", cut.segments)
	}
}

// all keeps what is replayed.
type all []string

func (a *all) Executed(e *wet.Executed) error {
	*a = append(*a, fmt.Sprintf("%d %x %v", e.Symbol, e.Addr, e.Written))
	return nil
}

// TestReplayOfAPart: what ran at some symbols is replayed by the segments that they are in alone,
// as it is in a replay of all.
func TestReplayOfAPart(t *testing.T) {
	r := load(t, "values_one")
	r.segment = 300
	s, _ := r.record(t, nil)
	segments, err := wet.Segments(s, 0)
	if err != nil {
		t.Fatal(err)
	}
	var whole all
	for i := range segments {
		if err := segments[i].Replay(0, ^uint64(0), &whole); err != nil {
			t.Fatal(err)
		}
	}
	for from := uint64(0); from < uint64(len(r.symbols)); from += 7 {
		var part all
		replayed := 0
		for i := range segments {
			before := len(part)
			if err := segments[i].Replay(from, from+2, &part); err != nil {
				t.Fatal(err)
			}
			if len(part) > before {
				replayed++
			}
		}
		want := slices.DeleteFunc(slices.Clone(whole), func(x string) bool {
			symbol, _, _ := strings.Cut(x, " ")
			return symbol != fmt.Sprint(from) && symbol != fmt.Sprint(from+1)
		})
		if !slices.Equal(part, want) || replayed > 2 {
			t.Fatalf("of symbols %d and behind, in %d segments: %s", from, replayed,
				cmp.Diff(want, part))
		}
	}
}

// TestHashMismatch: what a hit does not agree with is taken back, what is lost is not known, and
// from a hit on that has sent all registers all is known again.
func TestHashMismatch(t *testing.T) {
	whole := load(t, "tailcalls")
	best, _ := whole.replayed(t, nil)
	for name, c := range map[string]struct {
		change func(list []wire.State) []wire.State
		has    func(counts wet.Counts) uint64
	}{
		"another register": {func(list []wire.State) []wire.State {
			for i := 7; i < len(list); i += 40 {
				list[i].Hash ^= 1
			}
			return list
		}, func(c wet.Counts) uint64 { return c.Wrong }},
		"another flag": {func(list []wire.State) []wire.State {
			list[20].Flags ^= machine.ZF
			return list
		}, func(c wet.Counts) uint64 { return c.Wrong }},
		"a handler": {func(list []wire.State) []wire.State {
			for i := range list {
				list[i].Interrupted = list[i].Whole && i > 0
			}
			return list
		}, func(c wet.Counts) uint64 { return c.Interrupted }},
		"a record lost": {func(list []wire.State) []wire.State {
			return append(list[:30], list[60:]...)
		}, func(c wet.Counts) uint64 { return c.Missing }},
		"a state twice": {func(list []wire.State) []wire.State {
			return append(list[:30:30], list[29:]...)
		}, func(c wet.Counts) uint64 { return c.Hits }},
		"none": {func([]wire.State) []wire.State { return nil },
			func(c wet.Counts) uint64 { return c.Missing }},
	} {
		t.Run(name, func(t *testing.T) {
			r := load(t, "tailcalls")
			r.states = c.change(r.states)
			got, counts := r.replayed(t, nil)
			if c.has(counts) == 0 {
				t.Errorf("%+v", counts)
			}
			if name != "none" && got.known < best.known*2/3 {
				t.Errorf("%d instructions are known, and %d of the whole", got.known, best.known)
			}
		})
	}
}

// TestPathsGoAstray: where paths do not come to the sites that were hit, nothing is known up to the
// next gap.
func TestPathsGoAstray(t *testing.T) {
	r := load(t, "tailcalls")
	for i := 40; i < len(r.states); i++ {
		r.states[i].Site = (r.states[i].Site + 1) % len(r.plan.Base.Sites)
	}
	c, counts := r.replayed(t, nil)
	if counts.Missing < uint64(len(r.states)-41) || c.known == 0 || c.known > c.count/2 {
		t.Errorf("%d of %d are known, %+v", c.known, c.count, counts)
	}
}

// everywhere are others who may write anywhere.
type everywhere struct{}

func (everywhere) Update() bool           { return true }
func (everywhere) Holds(uint64, int) bool { return false }

// above are others who may write from an address on.
type above uint64

func (a above) Update() bool                  { return false }
func (a above) Holds(addr uint64, n int) bool { return addr+uint64(n) > uint64(a) }

// TestLoadsOfSharedMemory: where others may write some memory, only what is loaded from there is
// unconfirmed, though a frame be there.
func TestLoadsOfSharedMemory(t *testing.T) {
	r := load(t, "values_one")
	none, _ := r.replayed(t, above(1<<63))
	all, _ := r.replayed(t, above(0))
	frames, _ := r.replayed(t, above(0x7ff000000000))
	if u := machine.Unconfirmed; none.by[u] > 0 || frames.by[u] == 0 || frames.by[u] >= all.by[u] {
		t.Errorf("unconfirmed: of none %d, of frames %d, of all %d", none.by[u], frames.by[u],
			all.by[u])
	}
}

// TestLoadsMayRace: where other threads may write, what is loaded from where they may is at most
// unconfirmed, and what the next hit agrees with is confirmed in registers.
func TestLoadsMayRace(t *testing.T) {
	r := load(t, "values_one")
	c, counts := r.replayed(t, everywhere{})
	t.Logf("values unknown %d, unconfirmed %d, confirmed %d; known %d of %d; %+v", c.by[0], c.by[1],
		c.by[3], c.known, c.count, counts)
	if c.by[machine.Unconfirmed] == 0 || c.by[machine.Confirmed] == 0 || counts.Wrong > 0 {
		t.Errorf("%v, %+v", c.by, counts)
	}
}

// A comparison compares what is replayed with the truth.
type comparison struct {
	t     *testing.T
	run   *run
	regs  truth.Replay
	next  int
	count int
	known int
	wrong int
	by    [4]int

	segments int
}

// seek goes on to the next step of a traced routine.
func (c *comparison) seek() {
	for ; c.next < len(c.run.steps); c.next++ {
		s := &c.run.steps[c.next]
		c.regs.Before(s)
		if _, ok := c.run.place[s.PC]; ok {
			return
		}
		c.regs.After(s)
	}
}

func (c *comparison) Executed(e *wet.Executed) error {
	if c.next >= len(c.run.steps) {
		c.t.Fatalf("%x is beyond the end", e.Addr)
	}
	step := &c.run.steps[c.next]
	if step.PC != e.Addr {
		c.t.Fatalf("step %d is %x, want %x", c.next, e.Addr, step.PC)
	}
	c.regs.After(step)
	c.count++
	all := true
	note := func(k machine.Knowledge, what string, got, want uint64) {
		c.by[k]++
		all = all && k != machine.Unknown
		if k != machine.Unknown && got != want && c.wrong < 5 {
			c.wrong++
			c.t.Errorf("step %d at %x, symbol %d: %s is %x (%d), want %x", c.next, e.Addr, e.Symbol,
				what, got, k, want)
		}
	}
	for _, w := range e.Written {
		note(w.Known, "a register", w.Value, c.regs.Registers[w.Number])
	}
	for i := range e.Accesses {
		a := &e.Accesses[i]
		list := step.Reads
		if a.Write {
			list = step.Writes
		}
		a.Size = min(a.Size, len(a.Bytes))
		want, ok := find(list, a)
		if !ok && a.At == machine.Unknown {
			c.by[0]++
			all = false
			continue
		}
		if !ok {
			c.t.Errorf("step %d at %x: an access to %x that is none, %+v", c.next, e.Addr, a.Addr, step)
			continue
		}
		note(a.Known, "memory", word(a.Bytes[:a.Size]), word(want))
	}
	if all {
		c.known++
	}
	c.next++
	c.seek()
	return nil
}

func find(list []truth.MemoryValue, a *machine.Access) ([]byte, bool) {
	for _, m := range list {
		n := uint64(len(m.Bytes))
		if at := a.Addr - m.Addr; at < n && at+uint64(a.Size) <= n {
			return m.Bytes[at:][:a.Size], true
		}
	}
	return nil, false
}

func word(b []byte) uint64 {
	var w [8]byte
	copy(w[:], b)
	return binary.LittleEndian.Uint64(w[:])
}

// TestSectionsWaitForNothing: what is copied for a snapshot waits for no segment to be encoded, and
// is not changed by what is recorded before it is completed.
func TestSectionsWaitForNothing(t *testing.T) {
	r := load(t, states.Names()[0])
	half := len(r.symbols) / 2
	begin := func() (rec *values.Recorder, th *values.Thread, release func()) {
		c := code.Of(r.plan.Base, nil)
		c.Place(0, r.sample.Trace.Bias)
		symbols := &ops.Symbols{}
		rec = values.New(r.plan, c, r.paths, symbols, nil)
		rec.SetSegment(200)
		release = rec.Hold()
		th = rec.Thread(1, 1, ops.NewRecorder(symbols, func(uint32, uint64) {}))
		for _, b := range r.batches(t) {
			rec.Take(b)
		}
		for _, s := range r.symbols[:half] {
			th.NewPath(s.routine, s.number, 1)
		}
		return rec, th, release
	}
	rec, th, release := begin()
	release()
	want := rec.Sections([]*values.Thread{th})()
	if len(want) < 5 {
		t.Fatalf("there are %d sections: no segments have ended", len(want))
	}
	rec, th, release = begin()
	complete := rec.Sections([]*values.Thread{th})
	for _, s := range r.symbols[half:] {
		th.NewPath(s.routine, s.number, 1)
	}
	th.End()
	release()
	got := complete()
	same := slices.EqualFunc(got, want, func(a, b *wpp.Section) bool {
		x, _ := a.Data()
		y, _ := b.Data()
		return a.Kind() == b.Kind() && bytes.Equal(x, y)
	})
	if !same {
		t.Error("what is recorded later changes what was copied")
	}
}

// TestSpill: each segment is spilled once, those of a thread in their order, and takes no memory
// from then on; a snapshot has them all.
func TestSpill(t *testing.T) {
	r := load(t, states.Names()[0])
	c := code.Of(r.plan.Base, nil)
	c.Place(0, r.sample.Trace.Bias)
	symbols := &ops.Symbols{}
	rec := values.New(r.plan, c, r.paths, symbols, nil)
	rec.SetSegment(200)
	th := rec.Thread(1, 1, ops.NewRecorder(symbols, func(uint32, uint64) {}))
	for _, b := range r.batches(t) {
		rec.Take(b)
	}
	var spilled []*wpp.Section
	for i, s := range r.symbols {
		th.NewPath(s.routine, s.number, 1)
		if i%100 == 0 {
			spilled = append(spilled, rec.Spill()...)
		}
	}
	th.End()
	all := rec.Sections([]*values.Thread{th})()
	before := rec.Bytes()
	last := rec.Spill()
	if after := rec.Bytes(); after >= before {
		t.Errorf("what is spilled takes memory: %d bytes, %d before", after, before)
	}
	if spilled = append(spilled, last...); len(spilled) < 10 || len(last) == 0 {
		t.Fatalf("%d sections are spilled, the last %d", len(spilled), len(last))
	}
	all = slices.DeleteFunc(all, func(x *wpp.Section) bool {
		return x.Kind() != wet.CommonKind && x.Kind() != wet.HeadKind && x.Kind() != wet.LogKind
	})
	isCommon := func(x *wpp.Section) bool { return x.Kind() == wet.CommonKind }
	if !slices.ContainsFunc(all, isCommon) {
		t.Error("segments have nothing in common")
	}
	if !slices.Equal(all, spilled) {
		t.Errorf("%d sections are spilled, and a snapshot has %d, or others", len(spilled), len(all))
	}
}
