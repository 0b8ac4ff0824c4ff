package shape

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"wpptrace/compress/ops"
	"wpptrace/compress/sequitur"
	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/entries"
	"wpptrace/compress/wpp/overlapped"
	"wpptrace/internal/overlapping"
	"wpptrace/loader/cfg"
	"wpptrace/loader/paths"
	"wpptrace/loader/paths/overlap"
	"wpptrace/query/bounds"
)

// A walker runs a program of drawn graphs, and writes down which path directly followed which, as
// it knows who called whom.
type walker struct {
	t        testing.TB
	random   *rand.Rand
	routines []*cfg.Routine
	numbers  []*paths.Numbering
	s        *wpp.Snapshot
	grammar  *sequitur.Grammar
	symbols  map[[2]uint64]uint32
	steps    int
	stack    []*frame
	truth    []follows
	callee   func(routine, block int) int
	entries  entries.Counts // of calls that do not name it
}

// A naming says what is known of a call before it is made.
type naming int

const (
	named     naming = iota // its callee
	byPointer               // nothing; it enters what it calls
	sometimes               // nothing; it may enter external code, which calls back
	always                  // it calls external code, which calls back
)

func namingOf(block int) naming {
	return [...]naming{named, named, sometimes, byPointer, always}[block%5]
}

// A follows is that path q directly followed p.
type follows struct {
	kind  overlapped.Kind
	p, q  *walked
	named bool // so was all that led there
}

type frame struct {
	routine int
	direct  bool    // begun by a call, and not called back
	named   bool    // and its callee was, and of what jumped there
	before  *walked // the caller's path, before the first one of its own
	last    *walked // the last one
	back    *walked // that with which what it called has returned
	// it was known beforehand that this would
	backNamed bool
	now       walked // the path that runs
	at        int    // its block
}

type walked struct {
	routine int
	number  uint64
	start   paths.Start
	blocks  []int
	end     paths.End
}

func drawProgram(t *rapid.T) []*cfg.Routine {
	routines := make([]*cfg.Routine, rapid.IntRange(1, 3).Draw(t, "routines"))
	for i := range routines {
		count := rapid.IntRange(5, 14).Draw(t, "blocks")
		r := &cfg.Routine{Name: fmt.Sprint("r", i), ID: i, Addr: uint64(i+1) << 16}
		near := func(b int) int { // mostly onward, so that paths are long
			if rapid.IntRange(0, 3).Draw(t, "back") == 0 {
				return rapid.IntRange(0, count-1).Draw(t, "to")
			}
			return min(count-1, b+rapid.IntRange(1, 3).Draw(t, "on"))
		}
		for b := range count {
			x := cfg.Block{Lo: r.Addr + uint64(b), Insns: make([]cfg.Insn, 1),
				End: rapid.SampledFrom([]cfg.End{cfg.Fall, cfg.Jcc, cfg.Jcc, cfg.Jcc, cfg.Jcc,
					cfg.Jmp, cfg.Call, cfg.Ret, cfg.Tail, cfg.Table}).Draw(t, "end")}
			switch b {
			case 0:
				x.End = cfg.Jcc
			case count - 1:
				x.End = cfg.Ret
			}
			switch x.End {
			case cfg.Fall, cfg.Jmp, cfg.Call:
				x.Succ = []int{near(b)}
			case cfg.Jcc:
				x.Succ = []int{near(b), near(b)}
			case cfg.Table:
				x.Succ = []int{near(b), near(b), near(b)}
			}
			r.Blocks = append(r.Blocks, x)
		}
		routines[i] = r
	}
	return routines
}

func newWalker(t testing.TB, routines []*cfg.Routine, seed uint64) *walker {
	w := &walker{t: t, random: rand.New(rand.NewPCG(seed, 1)), routines: routines,
		s: &wpp.Snapshot{Images: []wpp.Image{{Name: "/drawn"}}}, grammar: sequitur.New(),
		symbols: map[[2]uint64]uint32{}}
	for _, r := range routines {
		n, err := paths.Number(r)
		if err != nil {
			t.Fatal(err)
		}
		w.numbers = append(w.numbers, n)
		x := wpp.Routine{Name: r.Name, Entry: r.Addr, Paths: n.Total,
			Ranges: []wpp.Range{{Lo: r.Addr, Hi: r.Addr + uint64(len(r.Blocks))}}}
		for _, b := range r.Blocks {
			x.Blocks = append(x.Blocks, wpp.Block{Addr: b.Lo, Lengths: []byte{1}})
		}
		w.s.Routines = append(w.s.Routines, x)
	}
	w.callee = func(routine, block int) int { return (routine + block) % len(routines) }
	w.entries = entries.Counts{}
	return w
}

// call makes the call or jump of a block.
func (w *walker) call(routine, block int) (to int, direct, isNamed bool) {
	to = w.callee(routine, block)
	direct = true
	switch namingOf(block) {
	case named:
		return to, true, true
	case byPointer:
		to = w.random.IntN(len(w.routines))
	case sometimes:
		direct = w.random.IntN(8) > 0
	case always:
		direct = false
	}
	key := entries.Call{Routine: routine, Block: block, Callee: to}
	n := w.entries[key]
	if direct {
		n.Traced++
	} else {
		n.External++
	}
	w.entries[key] = n
	return to, direct, false
}

func (w *walker) run(steps int) {
	for w.steps = steps; w.steps > 0; {
		w.enter(0, false, false, nil)
		for len(w.stack) > 0 && w.steps > 0 {
			w.step()
			w.steps--
		}
	}
	w.s.Threads = []wpp.Thread{{TID: 1, Grammar: wpp.FromSequitur(w.grammar)}}
	if err := w.s.Check(); err != nil {
		w.t.Fatal(err)
	}
}

func (w *walker) enter(routine int, direct, isNamed bool, before *walked) {
	f := &frame{routine: routine, direct: direct, named: isNamed, before: before}
	w.stack = append(w.stack, f)
	w.begin(f, w.routines[routine].Entry, paths.StartEntry)
}

func (w *walker) begin(f *frame, block int, start paths.Start) {
	number, ok := w.numbers[f.routine].Begin(block, start)
	if !ok {
		w.t.Fatalf("no path begins at block %d of %d", block, f.routine)
	}
	f.now = walked{routine: f.routine, number: number, start: start, blocks: []int{block}}
	f.at = block
}

// finish ends the path that runs.
func (w *walker) finish(f *frame, inc uint64, end paths.End) *walked {
	p := f.now
	p.number, p.end = p.number+inc, end
	key := [2]uint64{uint64(f.routine), p.number}
	sym, ok := w.symbols[key]
	if !ok {
		sym = uint32(len(w.s.Symbols))
		w.symbols[key] = sym
		w.s.Symbols = append(w.s.Symbols, wpp.Symbol{Routine: f.routine, Path: p.number,
			Start: ops.Start(p.start), End: ops.End(end), Blocks: p.blocks})
	}
	w.grammar.Append(sym)
	switch {
	case f.before != nil:
		w.note(overlapped.Into, f.before, &p, f.named)
	case p.start == paths.StartLoop && f.last != nil && f.last.end == paths.EndLoop:
		w.note(overlapped.OverLoop, f.last, &p, true)
	case p.start == paths.StartCall && f.back != nil:
		w.note(overlapped.Back, f.back, &p, f.backNamed)
	}
	f.before, f.back, f.last = nil, nil, &p
	return &p
}

func (w *walker) note(kind overlapped.Kind, p, q *walked, isNamed bool) {
	w.truth = append(w.truth, follows{kind, p, q, isNamed})
}

func (w *walker) step() {
	f := w.stack[len(w.stack)-1]
	n, b := w.numbers[f.routine], &w.routines[f.routine].Blocks[f.at]
	switch b.End {
	case cfg.Ret, cfg.Tail:
		end := map[cfg.End]paths.End{cfg.Ret: paths.EndReturn, cfg.Tail: paths.EndTail}[b.End]
		p := w.finish(f, n.Finish(f.at, end), end)
		w.stack = w.stack[:len(w.stack)-1]
		if end == paths.EndTail {
			to, direct, isNamed := w.call(f.routine, f.at)
			w.enter(to, direct && f.direct, isNamed && f.named, nil)
			return
		}
		if len(w.stack) > 0 {
			caller := w.stack[len(w.stack)-1]
			if f.direct {
				caller.back, caller.backNamed = p, f.named
			}
			w.begin(caller, w.routines[caller.routine].Blocks[caller.at].Succ[0], paths.StartCall)
		}
	case cfg.Call:
		p := w.finish(f, n.Finish(f.at, paths.EndCall), paths.EndCall)
		if len(w.stack) > 30 { // exit
			w.grammar.Append(w.unwind(len(w.stack)))
			w.stack = nil
			return
		}
		to, direct, isNamed := w.call(f.routine, f.at)
		if !direct {
			p = nil
		}
		w.enter(to, direct, isNamed, p)
	default:
		to := b.Succ[w.random.IntN(len(b.Succ))]
		inc, ends, end, next := n.Step(f.at, to)
		if !ends {
			f.now.number, f.at = f.now.number+inc, to
			f.now.blocks = append(f.now.blocks, to)
			return
		}
		w.finish(f, inc, end)
		w.begin(f, to, next)
	}
}

func (w *walker) unwind(n int) uint32 {
	key := [2]uint64{1 << 40, uint64(n)}
	sym, ok := w.symbols[key]
	if !ok {
		sym = uint32(len(w.s.Symbols))
		w.symbols[key] = sym
		w.s.Symbols = append(w.s.Symbols, wpp.Symbol{IsMark: true, Mark: ops.Unwind,
			N: uint64(n)})
	}
	return sym
}

func (w *walker) shapes() (shapes []overlapped.Shape) {
	for i, r := range w.routines {
		shape, err := overlapping.Shape(r, i, func(block int) int {
			switch end := r.Blocks[block].End; {
			case namingOf(block) == named && (end == cfg.Call || end == cfg.Tail):
				return w.callee(i, block)
			}
			return -1
		})
		if err != nil {
			w.t.Fatal(err)
		}
		shapes = append(shapes, *shape)
	}
	return shapes
}

// TestAnyWalk runs drawn programs, with call-backs and calls through pointers, and keeps how
// activations began, or does not. Pairs are those that ran; but for those of loops and calls that
// are left out. Lower bounds are at most, and upper ones at least, how often each interesting path
// ran, for each degree. They are never wider for the next degree, and exact at the greatest useful
// one.
func TestAnyWalk(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWalker(t, drawProgram(rt), rapid.Uint64().Draw(rt, "seed"))
		w.run(600)
		isKept := rapid.Bool().Draw(rt, "kept")
		if isKept {
			w.s.Sections = append(w.s.Sections, w.entries.Section())
		}
		shapes := w.shapes()
		p, err := bounds.Follow(w.s, shapes)
		if err != nil {
			rt.Fatal(err)
		}
		w.compare(rt, p, isKept)
		m, err := bounds.New(w.s, p)
		if err != nil {
			rt.Fatal(err)
		}
		if elsewhere := m.TakeTruth(m); elsewhere != 0 {
			rt.Fatalf("%d pairs have no place", elsewhere)
		}
		checkBounds(rt, m, len(p.Counts) > 0)
		checkDegrees(rt, m)
	})
}

// compare compares pairs with those that ran, but for calls at which external code was in between
// some times. Where it is not kept how activations began, it has to be known beforehand.
func (w *walker) compare(t *rapid.T, p *overlapped.Profile, isKept bool) {
	want, got := map[string]uint64{}, map[string]uint64{}
	leftOut, mixed := uint64(0), w.mixed(p)
	for call, n := range w.entries {
		at := place{overlapped.Into, call.Routine, call.Block, call.Callee}
		isCall := w.routines[call.Routine].Blocks[call.Block].End == cfg.Call
		if want := isKept && isCall && n.Traced > 0 && n.External > 0; mixed[at] && !want {
			t.Fatalf("%v is left out: %+v", at, n)
		}
	}
	for _, x := range w.truth {
		blocks := x.q.blocks
		if !isKept && !x.named || mixed[placeOf(x.kind, x.p.routine, x.p.blocks, x.q.routine,
			blocks)] {
			continue
		}
		if x.kind == overlapped.OverLoop {
			shape := p.ShapeOf(x.q.routine)
			l := &shape.Loops[shape.LoopAt(blocks[0])]
			if l.LeftOut != "" {
				leftOut++
				continue
			}
			blocks = l.After(blocks)
		}
		want[fmt.Sprint(x.kind, x.p.routine, x.p.number, x.q.routine, blocks)]++
	}
	for _, c := range p.Counts {
		y, x := &w.s.Symbols[c.Path], &p.Extensions[c.Extension]
		kind, _ := overlapped.KindOf(y.End)
		if mixed[placeOf(kind, y.Routine, y.Blocks, x.Routine, x.Blocks)] {
			continue
		}
		got[fmt.Sprint(kind, y.Routine, y.Path, x.Routine, x.Blocks)] += c.N
	}
	if diff := cmp.Diff(want, got); diff != "" || p.Broken[overlapped.LeftOut] != leftOut {
		t.Fatalf("%s, %d left out, not %d", diff, p.Broken[overlapped.LeftOut], leftOut)
	}
}

// A place is that of a pair.
type place struct {
	kind                   overlapped.Kind
	routine, block, callee int
}

func placeOf(kind overlapped.Kind, p int, first []int, q int, second []int) place {
	switch kind {
	case overlapped.Into:
		return place{kind, p, first[len(first)-1], q}
	case overlapped.Back:
		return place{kind, q, second[0], p}
	}
	return place{kind: kind}
}

// mixed returns the places that a profile leaves out for external code was in between some times.
func (w *walker) mixed(p *overlapped.Profile) map[place]bool {
	list := map[place]bool{}
	for _, u := range p.Unsure {
		if u.Reason == overlapped.Mixed {
			first, second := &w.s.Symbols[u.P], &w.s.Symbols[u.Q]
			list[placeOf(u.Kind, first.Routine, first.Blocks, second.Routine, second.Blocks)] = true
		}
	}
	return list
}

type interval struct{ lower, upper uint64 }

func checkBounds(t *rapid.T, m *bounds.Model, some bool) {
	before := map[string]interval{}
	most := m.Degree()
	for k := bounds.Alone; k <= most+1; k++ {
		now := map[string]interval{}
		for a := range m.Answers(k) {
			if a.LeftOut == overlap.Irreducible || a.LeftOut == overlapped.Mixed.String() {
				continue
			}
			if a.LeftOut != "" {
				t.Fatal(a.LeftOut)
			}
			if a.Outside > 0 {
				t.Fatalf("degree %d: of %+v, %d rows are wrong", k, a.Place, a.Outside)
			}
			if k >= a.Degree && (a.Definite != a.Potential || a.Exact != a.Pairs) {
				t.Fatalf("degree %d of %+v is not exact: %+v", k, a.Place, a)
			}
			for r := range a.Rows() {
				key := fmt.Sprint(a.Place, r.First, r.Second)
				now[key] = interval{r.Lower, r.Upper}
				if b, ok := before[key]; k > bounds.Alone &&
					(!ok || r.Lower < b.lower || r.Upper > b.upper) {
					t.Fatalf("degree %d: %s is in %d to %d, and was in %v", k, key, r.Lower,
						r.Upper, b)
				}
			}
		}
		if some && len(now) == 0 {
			t.Fatal("no rows")
		}
		before = now
	}
}

// checkDegrees: counts of a degree say as much of each lesser one as the whole path does, without
// the truth.
func checkDegrees(t *rapid.T, m *bounds.Model) {
	flows := func(m *bounds.Model, k int) (list []string) {
		for a := range m.Answers(k) {
			list = append(list, fmt.Sprint(a.Place, a.Degree, a.Definite, a.Potential, a.Exact))
		}
		return list
	}
	degree := rapid.IntRange(0, 3).Draw(t, "degree")
	p := *m.Profile
	p.Degree = degree
	p.Extensions = slices.Clone(p.Extensions)
	for i := range p.Extensions {
		x := &p.Extensions[i]
		x.Blocks = p.ShapeOf(x.Routine).Extend(x.Blocks, degree)
	}
	of, err := bounds.New(m.Snapshot, &p)
	if err != nil {
		t.Fatal(err)
	}
	for k := bounds.Alone; k <= degree+1; k++ {
		if diff := cmp.Diff(flows(m, min(k, degree)), flows(of, k)); diff != "" {
			t.Fatalf("degree %d of %d: %s", k, degree, diff)
		}
	}
}
