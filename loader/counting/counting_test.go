package counting

import (
	"math/rand/v2"
	"testing"

	"wpptrace/loader/cfg"
	"wpptrace/loader/paths"
)

// draw draws a routine at random: blocks that go on to others, most of them behind.
func draw(r *rand.Rand) *cfg.Routine {
	n := 1 + r.IntN(10)
	to := func(b int) int {
		if r.IntN(4) == 0 {
			return r.IntN(n)
		}
		return min(b+1+r.IntN(3), n-1)
	}
	x := &cfg.Routine{Name: "drawn"}
	for b := range n {
		var bl cfg.Block
		switch k := r.IntN(12); {
		case b == n-1 || k == 0:
			bl.End = cfg.Ret
		case k < 6:
			bl.End, bl.Succ = cfg.Jcc, []int{to(b), to(b)}
			if r.IntN(20) == 0 {
				bl.Succ[0] = cfg.Exit
			}
		case k < 8:
			bl.End, bl.Succ = cfg.Call, []int{to(b)}
		case k < 9:
			bl.End, bl.Succ = cfg.Table, []int{to(b), to(b), to(b)}
		case k < 10:
			bl.End, bl.Succ = cfg.Jmp, []int{to(b)}
		default:
			bl.End, bl.Succ = cfg.Fall, []int{min(b+1, n-1)}
		}
		x.Blocks = append(x.Blocks, bl)
	}
	return x
}

const mostSteps = 50_000

// TestDrawn counts paths of drawn routines as the kernel would on drawn runs, and compares.
func TestDrawn(t *testing.T) {
	told, unclear, refused, probes, blocks, compared := 0, 0, 0, 0, 0, 0
	for seed := range uint64(4000) {
		r := rand.New(rand.NewPCG(seed, 1))
		x := draw(r)
		n, err := paths.Number(x)
		if err != nil {
			t.Fatal(err)
		}
		q := Question{Routine: x, Numbering: n, Rest: r.IntN(2) == 0,
			Twice: func(int) bool { return false },
			Cost:  func(b int, s Site) float64 { return float64(b * 7 % 5) },
			Site: func(b int) (Site, bool) {
				return Site{Jump: (uint64(b)+seed)%11 != 1}, uint64(b)*seed%9 != 1
			},
		}
		for range 1 + r.IntN(4) {
			q.Paths = append(q.Paths, r.Uint64N(n.Total))
		}
		q.Paths = unique(q.Paths)
		a, err := Choose(q)
		if err != nil {
			refused++
			continue
		}
		told += len(a.Paths)
		unclear += len(a.Unclear)
		probes += len(a.Machine.Sites)
		blocks += len(x.Blocks)
		s := newSimulation(x, n, a, r)
		for s.steps = 0; s.steps < 4000 && s.activation(0); {
		}
		if s.steps > mostSteps {
			continue // it goes round and round
		}
		s.compare(t, seed, a.Machine.Rest != nil)
		compared++
	}
	t.Logf("%d told, %d unclear, %d refused, %d compared; %d probes in %d blocks", told, unclear,
		refused, compared, probes, blocks)
	if told < 5000 || compared < 3000 || probes > blocks/2 {
		t.Error("that is too little to say anything, or too many probes")
	}
}

func unique(list []uint64) (out []uint64) {
	seen := map[uint64]bool{}
	for _, x := range list {
		if !seen[x] {
			seen[x] = true
			out = append(out, x)
		}
	}
	return out
}

// A simulation runs a routine at random, and has a machine count it.
type simulation struct {
	x     *cfg.Routine
	n     *paths.Numbering
	a     *Answer
	r     *rand.Rand
	sites map[int]bool

	cfa, row int // the thread's state
	counters []int
	ran      map[uint64]int
	steps    int
	isOne    map[uint64]bool // of the paths that are counted by themselves
	others   int             // that have run
	least    int             // of them, the most that was known to have
	early    bool            // so many had not
}

func newSimulation(x *cfg.Routine, n *paths.Numbering, a *Answer, r *rand.Rand) *simulation {
	s := &simulation{x: x, n: n, a: a, r: r, sites: map[int]bool{}, cfa: -1, row: lost,
		counters: make([]int, a.Machine.Keys), ran: map[uint64]int{},
		isOne: map[uint64]bool{}}
	for _, b := range a.Machine.Sites {
		s.sites[b] = true
	}
	for _, number := range a.Paths {
		s.isOne[number] = true
	}
	return s
}

// activation runs the routine once. Frames at the same depth are in the same place. Calls may call
// the routine itself, or something that makes no hit. It returns false where there is no end.
func (s *simulation) activation(depth int) bool {
	b := s.x.Entry
	id, _ := s.n.Begin(b, paths.StartEntry)
	for {
		s.steps++
		bl := &s.x.Blocks[b]
		to := cfg.Exit
		if len(bl.Succ) > 0 {
			to = bl.Succ[s.r.IntN(len(bl.Succ))]
		}
		if s.steps > mostSteps {
			return false
		}
		if s.sites[b] {
			out := uint8(0)
			if bl.End == cfg.Jcc && to == bl.Succ[0] {
				out = 1
			}
			s.hit(depth, b, out)
		}
		switch {
		case bl.IsCall():
			s.end(id + s.n.Finish(b, paths.EndCall))
			if depth < 3 && s.r.IntN(3) == 0 && !s.activation(depth+1) {
				return false
			}
			id, _ = s.n.Begin(to, paths.StartCall)
		case to == cfg.Exit && bl.End == cfg.Jcc:
			s.end(id + s.n.Finish(b, paths.EndTail))
			return true
		case to == cfg.Exit:
			s.end(id + s.n.Finish(b, paths.EndReturn))
			return true
		default:
			inc, ends, _, next := s.n.Step(b, to)
			id += inc
			if ends {
				s.end(id)
				id, _ = s.n.Begin(to, next)
			}
		}
		b = to
	}
}

func (s *simulation) hit(cfa, block int, out uint8) {
	m := s.a.Machine
	symbol := symbolOf(block, out)
	if _, ok := find(m.Unsure, symbol); !ok {
		symbol = symbolOf(block, 0)
	}
	step, ok := Step{}, false
	if s.cfa == cfa && s.row != lost {
		step, ok = find(m.Rows[s.row].Steps, symbol)
	}
	if !ok {
		step, ok = find(m.Defaults, symbol)
	}
	if !ok {
		s.row = lost
		return
	}
	s.cfa, s.row = cfa, step.Row
	if step.Key != None {
		s.counters[step.Key]++
	}
	if m.Rest != nil {
		n := s.value(m.Rest)
		if m.Rows[s.row].Open {
			n--
		}
		s.least = max(s.least, n)
	}
}

// end notes a path that has run.
func (s *simulation) end(path uint64) {
	s.ran[path]++
	if !s.isOne[path] {
		s.others++
	}
	s.early = s.early || s.least > s.others
}

func (s *simulation) value(f *Formula) (sum int) {
	for _, k := range f.Plus {
		sum += s.counters[k]
	}
	for _, k := range f.Minus {
		sum -= s.counters[k]
	}
	return sum
}

func (s *simulation) compare(t *testing.T, seed uint64, rest bool) {
	t.Helper()
	others := 0
	for _, n := range s.ran {
		others += n
	}
	for i, number := range s.a.Paths {
		got := s.value(&s.a.Machine.Paths[i])
		others -= s.ran[number]
		if got != s.ran[number] {
			t.Errorf("seed %d: path %d ran %d times, counted %d", seed, number, s.ran[number], got)
		}
	}
	if s.early {
		t.Errorf("seed %d: others were known to have run before they had", seed)
	}
	if rest {
		if got := s.value(s.a.Machine.Rest); got != others {
			t.Errorf("seed %d: others ran %d times, counted %d", seed, others, got)
		}
	}
	if t.Failed() {
		t.Fatalf("%+v\n%v", s.x.Blocks, s.a.Machine.Sites)
	}
}
