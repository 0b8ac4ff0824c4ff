package overlap

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"wpptrace/loader/cfg"
	"wpptrace/loader/paths"
)

type block struct {
	end  cfg.End
	succ []int
}

func routine(blocks []block) *cfg.Routine {
	r := &cfg.Routine{Name: "graph"}
	for _, b := range blocks {
		r.Blocks = append(r.Blocks, cfg.Block{End: b.end, Succ: b.succ})
	}
	return r
}

func graphOf(t testing.TB, r *cfg.Routine) *Graph {
	t.Helper()
	g, err := Of(r)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func numberOf(t testing.TB, g *Graph, k int) *Numbering {
	t.Helper()
	n, err := g.Number(k)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// The blocks of the loop of tables 2 to 5.
const (
	en = iota
	p1
	b1
	p2
	b2
	b3
	p3
	ex
)

func tableLoop() *cfg.Routine {
	return routine([]block{
		en: {cfg.Fall, []int{p1}},
		p1: {cfg.Jcc, []int{b1, p2}},
		b1: {cfg.Jmp, []int{p3}},
		p2: {cfg.Jcc, []int{b2, b3}},
		b2: {cfg.Jmp, []int{p3}},
		b3: {cfg.Fall, []int{p3}},
		p3: {cfg.Jcc, []int{p1, ex}},
		ex: {cfg.Ret, nil},
	})
}

// The blocks of figure 2. Behind its call site, f goes on to P3; from there B4 or B5 lead to B6.
const (
	fEn = iota
	fP1
	fP2
	fB1
	fB2
	fB3 // with the call C1
	fP3
	fB4
	fB5
	fB6
	fEx
)

func figure2f() *cfg.Routine {
	return routine([]block{
		fEn: {cfg.Fall, []int{fP1}},
		fP1: {cfg.Jcc, []int{fP2, fB2}},
		fP2: {cfg.Jcc, []int{fB1, fB2}},
		fB1: {cfg.Jmp, []int{fB3}},
		fB2: {cfg.Fall, []int{fB3}},
		fB3: {cfg.Call, []int{fP3}},
		fP3: {cfg.Jcc, []int{fB4, fB5}},
		fB4: {cfg.Jmp, []int{fB6}},
		fB5: {cfg.Fall, []int{fB6}},
		fB6: {cfg.Fall, []int{fEx}},
		fEx: {cfg.Ret, nil},
	})
}

const (
	gEn = iota
	gP1
	gP2
	gB1
	gP3
	gB2
	gB3
	gEx
)

func figure2g() *cfg.Routine {
	return routine([]block{
		gEn: {cfg.Fall, []int{gP1}},
		gP1: {cfg.Jcc, []int{gP2, gB3}},
		gP2: {cfg.Jcc, []int{gB1, gP3}},
		gB1: {cfg.Fall, []int{gP3}},
		gP3: {cfg.Jcc, []int{gB2, gB3}},
		gB2: {cfg.Fall, []int{gB3}},
		gB3: {cfg.Fall, []int{gEx}},
		gEx: {cfg.Ret, nil},
	})
}

func extensions(t testing.TB, x *Extensions, err error) (list []Extension) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	for number := range x.Total {
		e, err := x.Decode(number)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, e)
	}
	return list
}

// TestTable2: the loop has 12 acyclic paths, 6 of which end with its back edge, in 3 sequences of
// blocks within the loop.
func TestTable2(t *testing.T) {
	g := graphOf(t, tableLoop())
	if len(g.Loops()) != 1 || g.Numbering().Total != 12 || g.OverBackEdges(0) != 6 {
		t.Fatalf("%+v, %d paths, %d end with the back edge", g.Loops(), g.Numbering().Total,
			g.OverBackEdges(0))
	}
	loop := &g.Loops()[0]
	if want := []int{p1, b1, p2, b2, b3, p3}; loop.Head != p1 || !slices.Equal(loop.Blocks, want) ||
		!slices.Equal(loop.Latches, []int{p3}) {
		t.Errorf("%+v", loop)
	}
	before, after := map[string]int{}, map[string]int{}
	for id := range g.Numbering().Total {
		p, err := g.Numbering().Decode(id)
		if err != nil {
			t.Fatal(err)
		}
		if p.End == paths.EndLoop {
			before[key(partIn(loop, p.Blocks))]++
		}
		if p.Start == paths.StartLoop {
			after[key(partIn(loop, p.Blocks))]++
		}
	}
	want := map[string]int{key([]int{p1, b1, p3}): 2, key([]int{p1, p2, b2, p3}): 2,
		key([]int{p1, p2, b3, p3}): 2}
	if diff := cmp.Diff(want, before) + cmp.Diff(want, after); diff != "" {
		t.Error(diff)
	}
}

// partIn returns what of a path that goes through the head of a loop is in the loop.
func partIn(l *Loop, blocks []int) (part []int) {
	for _, b := range blocks {
		switch {
		case b == l.Head || len(part) > 0 && slices.Contains(l.Blocks, b):
			part = append(part, b)
		case len(part) > 0:
			return part
		}
	}
	return part
}

func key(blocks []int) (s string) {
	for _, b := range blocks {
		s += string(rune('a' + b))
	}
	return s
}

// TestTable3: tables count the overlapping paths that have the degree. Those of a lesser degree
// that end before, 1!1 of degree 1 here, are counted in a profile besides.
func TestTable3(t *testing.T) {
	g := graphOf(t, tableLoop())
	for _, test := range []struct {
		k     int
		paths uint64 // of table 3
		want  []Extension
	}{
		{0, 6, []Extension{{[]int{p1}, 0}}},
		{1, 12, []Extension{{[]int{p1, b1, p3}, 1}, {[]int{p1, p2}, 1}}},
		{2, 12, []Extension{{[]int{p1, b1, p3}, 1}, {[]int{p1, p2, b2, p3}, 2},
			{[]int{p1, p2, b3, p3}, 2}}},
		{3, 0, []Extension{{[]int{p1, b1, p3}, 1}, {[]int{p1, p2, b2, p3}, 2},
			{[]int{p1, p2, b3, p3}, 2}}},
	} {
		x, err := numberOf(t, g, test.k).Loop(0)
		if diff := cmp.Diff(test.want, extensions(t, x, err)); diff != "" {
			t.Errorf("degree %d: %s", test.k, diff)
		}
		if got := g.OverBackEdges(0) * x.OfDegree; got != test.paths || x.Most != 2 {
			t.Errorf("degree %d: %d paths, want %d; at most %d", test.k, got, test.paths, x.Most)
		}
	}
}

// TestTable6 counts the overlapping paths of type I from f into g.
func TestTable6(t *testing.T) {
	f, g := graphOf(t, figure2f()), graphOf(t, figure2g())
	for k, want := range []uint64{3, 6, 6, 12} {
		x, err := numberOf(t, g, k).From(gEn)
		if err != nil {
			t.Fatal(err)
		}
		if got := f.Reaching(fB3) * x.OfDegree; got != want || x.Most != 3 {
			t.Errorf("degree %d: %d paths, want %d; at most %d", k, got, want, x.Most)
		}
	}
	x, err := numberOf(t, g, 3).From(gEn)
	if err != nil || f.Reaching(fB3)*x.Total != 15 {
		t.Errorf("%d interesting paths, %v", f.Reaching(fB3)*x.Total, err)
	}
}

// TestTable7 counts the overlapping paths of type II from g back into f.
func TestTable7(t *testing.T) {
	f, g := graphOf(t, figure2f()), graphOf(t, figure2g())
	for k, want := range []uint64{5, 10} {
		x, err := numberOf(t, f, k).From(fP3)
		if err != nil {
			t.Fatal(err)
		}
		if got := g.Returning() * x.OfDegree; got != want || x.Most != 1 {
			t.Errorf("degree %d: %d paths, want %d; at most %d", k, got, want, x.Most)
		}
	}
}

// TestClasses has a loop as in figure 1, with overlap 2 and 1: from P3 on, the way by B1 has passed
// two predicates, and the one by P2 three.
func TestClasses(t *testing.T) {
	const (
		en = iota
		p1
		b1
		p2
		p3
		b2
		p4
		ex
	)
	g := graphOf(t, routine([]block{
		en: {cfg.Fall, []int{p1}},
		p1: {cfg.Jcc, []int{b1, p2}},
		b1: {cfg.Jmp, []int{p3}},
		p2: {cfg.Jcc, []int{p3, p4}},
		p3: {cfg.Jcc, []int{b2, p4}},
		b2: {cfg.Fall, []int{p4}},
		p4: {cfg.Jcc, []int{p1, ex}},
		ex: {cfg.Ret, nil},
	}))
	for k, want := range map[int][]Edge{
		2: {{p1, b1, Definitely}, {p1, p2, Definitely}, {b1, p3, Definitely},
			{p2, p3, Definitely}, {p2, p4, Definitely}, {p3, b2, Possibly}, {p3, p4, Possibly},
			{b2, p4, Possibly}},
		1: {{p1, b1, Definitely}, {p1, p2, Definitely}, {b1, p3, Definitely},
			{p2, p3, DefinitelyNot}, {p2, p4, DefinitelyNot}, {p3, b2, DefinitelyNot},
			{p3, p4, DefinitelyNot}, {b2, p4, DefinitelyNot}},
	} {
		x, err := numberOf(t, g, k).Loop(0)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, x.Edges()); diff != "" {
			t.Errorf("degree %d: %s", k, diff)
		}
	}
}

// TestIrreducible: a loop that is entered in its midst is left out by name.
func TestIrreducible(t *testing.T) {
	g := graphOf(t, routine([]block{
		{cfg.Jcc, []int{1, 2}},
		{cfg.Fall, []int{2}},
		{cfg.Jcc, []int{1, 3}},
		{cfg.Ret, nil},
	}))
	if len(g.Loops()) != 1 || g.Loops()[0].LeftOut != Irreducible {
		t.Fatalf("%+v", g.Loops())
	}
	want := "number overlapping paths of the loop at block 1 of graph: " + Irreducible
	if _, err := numberOf(t, g, 1).Loop(0); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// TestLandingPads: a pad of a call in the loop is within it, and no way around its head.
func TestLandingPads(t *testing.T) {
	r := routine([]block{
		{cfg.Fall, []int{1}},
		{cfg.Jcc, []int{2, 6}},
		{cfg.Jcc, []int{3, 4}},
		{cfg.Call, []int{4}},
		{cfg.Jmp, []int{1}},
		{cfg.Jmp, []int{4}}, // the pad
		{cfg.Ret, nil},
	})
	r.Blocks[3].Pads, r.Pads = []int{5}, []int{5}
	g := graphOf(t, r)
	if len(g.Loops()) != 1 || g.Loops()[0].LeftOut != "" || !g.Loops()[0].Has(5) {
		t.Errorf("%+v", g.Loops())
	}
	r.Faulty = true // any instruction may lead to the pad, those before the loop too
	if g := graphOf(t, r); g.Loops()[0].LeftOut != Irreducible {
		t.Errorf("%+v", g.Loops())
	}
}

// diamonds has a loop whose rounds go through so many branches, one after the other.
func diamonds(count int) *cfg.Routine {
	var blocks []block
	for range count {
		n := len(blocks)
		blocks = append(blocks, block{cfg.Jcc, []int{n + 1, n + 2}},
			block{cfg.Jmp, []int{n + 3}}, block{cfg.Fall, []int{n + 3}})
	}
	n := len(blocks)
	return routine(append(blocks, block{cfg.Jcc, []int{0, n + 1}}, block{cfg.Ret, nil}))
}

// TestManyPaths: a loop of more than 10^9 overlapping paths has a number for each, a degree beyond
// use costs no more than the greatest useful one, and where paths are cut to keep numbers small,
// extensions end as well.
func TestManyPaths(t *testing.T) {
	g := graphOf(t, diamonds(15))
	for _, k := range []int{15, MostDegree} {
		x, err := numberOf(t, g, k).Loop(0)
		if err != nil {
			t.Fatal(err)
		}
		if all := g.OverBackEdges(0) * x.Total; all != 1<<31 || x.Most != 15 {
			t.Fatalf("%d overlapping paths; most %d", all, x.Most)
		}
		for _, number := range []uint64{0, 12345, x.Total - 1} {
			e, err := x.Decode(number)
			if err != nil {
				t.Fatal(err)
			}
			if back, err := x.Encode(e.Blocks); err != nil || back != number || e.Degree != 15 {
				t.Errorf("%d is %+v, which is %d, %v", number, e, back, err)
			}
		}
	}
	x, err := numberOf(t, graphOf(t, diamonds(60)), MostDegree).Loop(0)
	if err != nil || x.Total > 1<<16 || x.Most >= 60 {
		t.Errorf("%d extensions, the greatest useful degree is %d, %v", x.Total, x.Most, err)
	}
	for _, k := range []int{-1, MostDegree + 1} {
		if _, err := g.Number(k); err == nil {
			t.Errorf("degree %d has numbers", k)
		}
	}
}

func drawRoutine(t *rapid.T) *cfg.Routine {
	count := rapid.IntRange(1, 14).Draw(t, "blocks")
	r := &cfg.Routine{Name: "drawn"}
	to := rapid.IntRange(0, count-1)
	for range count {
		b := cfg.Block{End: rapid.SampledFrom([]cfg.End{cfg.Fall, cfg.Jcc, cfg.Jcc, cfg.Jcc,
			cfg.Jmp, cfg.Call, cfg.Ret, cfg.Tail, cfg.Table, cfg.NoReturn}).Draw(t, "end")}
		switch b.End {
		case cfg.Fall, cfg.Jmp, cfg.Call:
			b.Succ = []int{to.Draw(t, "to")}
		case cfg.Jcc:
			b.Succ = []int{rapid.IntRange(-1, count-1).Draw(t, "to"), to.Draw(t, "to")}
		case cfg.Table:
			b.Succ = rapid.SliceOfNDistinct(to, 1, min(4, count), rapid.ID[int]).Draw(t, "to")
		}
		r.Blocks = append(r.Blocks, b)
	}
	return r
}

// TestAnyRoutine: numbers are dense, Encode undoes Decode, and the extensions are just the
// beginnings of what follows a back edge, a call or an entry.
func TestAnyRoutine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRoutine(t)
		g, err := Of(r)
		if err != nil {
			t.Fatal(err)
		}
		if g.Numbering().Total > 3000 {
			return
		}
		k := rapid.IntRange(0, 6).Draw(t, "k")
		n, err := g.Number(k)
		if err != nil {
			t.Fatal(err)
		}
		type place struct{ loop, block int }
		want := map[place]map[string]bool{}
		most := map[place]int{}
		reaching := map[int]map[string]bool{}
		for id := range g.Numbering().Total {
			p, err := g.Numbering().Decode(id)
			if err != nil {
				t.Fatal(err)
			}
			for i, b := range p.Blocks {
				if reaching[b] == nil {
					reaching[b] = map[string]bool{}
				}
				reaching[b][p.Start.String()+key(p.Blocks[:i+1])] = true
			}
			at, part := place{-1, p.Blocks[0]}, p.Blocks
			if p.Start == paths.StartLoop {
				at.loop = g.LoopAt(p.Blocks[0])
				loop := &g.Loops()[at.loop]
				if loop.LeftOut != "" {
					continue
				}
				part = partIn(loop, part)
			}
			if want[at] == nil {
				want[at] = map[string]bool{}
			}
			var upTo []int
			for i, left := 0, k+1; i < len(part) && left > 0; i++ {
				upTo = append(upTo, part[i])
				if g.IsPredicate(part[i]) {
					left--
				}
			}
			want[at][key(upTo)] = true
			degree := -1
			for _, b := range part {
				if g.IsPredicate(b) {
					degree++
				}
			}
			if !g.IsPredicate(part[len(part)-1]) {
				degree++
			}
			most[at] = max(most[at], degree)
		}
		for b, ways := range reaching {
			if g.Reaching(b) != uint64(len(ways)) {
				t.Fatalf("%d paths get to block %d, want %d", g.Reaching(b), b, len(ways))
			}
		}
		for at, keys := range want {
			x, err := n.From(at.block)
			if at.loop >= 0 {
				x, err = n.Loop(at.loop)
			}
			if err != nil {
				t.Fatal(err)
			}
			if x.Total != uint64(len(keys)) || x.Most != most[at] {
				t.Fatalf("%+v has %d extensions of degree %d, want %d; most %d, want %d", at,
					x.Total, k, len(keys), x.Most, most[at])
			}
			exact := uint64(0)
			for number := range x.Total {
				e, err := x.Decode(number)
				if err != nil {
					t.Fatal(err)
				}
				if e.Degree == k {
					exact++
				}
				back, err := x.Encode(e.Blocks)
				if err != nil || back != number || !keys[key(e.Blocks)] {
					t.Fatalf("%d is %+v, which is %d, %v", number, e, back, err)
				}
			}
			if exact != x.OfDegree {
				t.Fatalf("%d of degree %d, want %d", x.OfDegree, k, exact)
			}
			if _, err := x.Decode(x.Total); err == nil {
				t.Fatal("beyond the numbers")
			}
		}
	})
}
