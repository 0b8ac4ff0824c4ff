package paths

import (
	"fmt"
	"math/rand"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"wpptrace/internal/testenv"
	"wpptrace/loader/cfg"
	"wpptrace/loader/cfg/recovery"
	"wpptrace/loader/image"
)

// graph makes a routine of blocks that end as their first field says.
type block struct {
	end  cfg.End
	succ []int
}

func graph(blocks ...block) *cfg.Routine {
	r := &cfg.Routine{Name: "graph"}
	for _, b := range blocks {
		r.Blocks = append(r.Blocks, cfg.Block{End: b.end, Succ: b.succ})
	}
	return r
}

func number(t testing.TB, r *cfg.Routine) *Numbering {
	t.Helper()
	n, err := Number(r)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// decodeAll returns all paths of a routine, by number.
func decodeAll(t testing.TB, n *Numbering) (out []Path) {
	t.Helper()
	for id := range n.Total {
		p, err := n.Decode(id)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, p)
	}
	return out
}

// TestBallLarus numbers the graph of figure 3 of Ball and Larus 1996, A to F, with edges in the
// order of blocks.
func TestBallLarus(t *testing.T) {
	n := number(t, graph(
		block{cfg.Jcc, []int{1, 2}},
		block{cfg.Jcc, []int{2, 3}},
		block{cfg.Fall, []int{3}},
		block{cfg.Jcc, []int{4, 5}},
		block{cfg.Fall, []int{5}},
		block{cfg.Ret, nil},
	))
	var want []Path
	for _, blocks := range [][]int{{0, 1, 2, 3, 4, 5}, {0, 1, 2, 3, 5}, {0, 1, 3, 4, 5},
		{0, 1, 3, 5}, {0, 2, 3, 4, 5}, {0, 2, 3, 5}} {
		want = append(want, Path{StartEntry, EndReturn, blocks})
	}
	if diff := cmp.Diff(want, decodeAll(t, n)); diff != "" {
		t.Error(diff)
	}
}

func TestShapes(t *testing.T) {
	for _, test := range []struct {
		name string
		r    *cfg.Routine
		want []Path
	}{
		{"one block", graph(block{cfg.Ret, nil}), []Path{{StartEntry, EndReturn, []int{0}}}},
		{"entry is a loop header: two starts",
			graph(block{cfg.Jcc, []int{0, 1}}, block{cfg.Ret, nil}), []Path{
				{StartEntry, EndLoop, []int{0}}, {StartEntry, EndReturn, []int{0, 1}},
				{StartLoop, EndLoop, []int{0}}, {StartLoop, EndReturn, []int{0, 1}},
			}},
		{"call", graph(block{cfg.Call, []int{1}}, block{cfg.NoReturn, nil}), []Path{
			{StartEntry, EndCall, []int{0}}, {StartCall, EndNoReturn, []int{1}},
		}},
		{"ordinary flow into the block after a call goes on",
			graph(block{cfg.Jcc, []int{2, 1}}, block{cfg.CallInd, []int{2}}, block{cfg.Tail, nil}),
			[]Path{
				{StartEntry, EndCall, []int{0, 1}}, {StartEntry, EndTail, []int{0, 2}}, {StartCall,
					EndTail, []int{2}},
			}},
		{"a call in a loop makes no back edge",
			graph(block{cfg.Fall, []int{1}}, block{cfg.Call, []int{2}}, block{cfg.Jcc, []int{1, 3}},
				block{cfg.Ret, nil}), []Path{
				{StartEntry, EndCall, []int{0, 1}}, {StartCall, EndCall, []int{2, 1}},
				{StartCall, EndReturn, []int{2, 3}},
			}},
		{"conditional tail jump and the way on",
			graph(block{cfg.Jcc, []int{-1, 1}}, block{cfg.Ret, nil}), []Path{
				{StartEntry, EndTail, []int{0}}, {StartEntry, EndReturn, []int{0, 1}},
			}},
		{"conditional tail jump, or once more", graph(block{cfg.Jcc, []int{-1, 0}}), []Path{
			{StartEntry, EndTail, []int{0}}, {StartEntry, EndLoop, []int{0}}, {StartLoop, EndTail,
				[]int{0}}, {StartLoop, EndLoop, []int{0}},
		}},
		{"both ways to the same block are one",
			graph(block{cfg.Jcc, []int{1, 1}}, block{cfg.Trap, nil}),
			[]Path{{StartEntry, EndNoReturn, []int{0, 1}}}},
		{"switch", graph(block{cfg.Table, []int{1, 2, 0}}, block{cfg.Ret, nil},
			block{cfg.TailInd, nil}), []Path{
			{StartEntry, EndLoop, []int{0}}, {StartEntry, EndReturn, []int{0, 1}}, {StartEntry,
				EndTail, []int{0, 2}},
			{StartLoop, EndLoop, []int{0}}, {StartLoop, EndReturn, []int{0, 1}}, {StartLoop,
				EndTail, []int{0, 2}},
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			n := number(t, test.r)
			if diff := cmp.Diff(test.want, decodeAll(t, n)); diff != "" {
				t.Error(diff)
			}
			checkInverse(t, n, test.r, func() uint64 { return 0 })
		})
	}
}

// TestPads checks that landing pads are starts, back edges from them included.
func TestPads(t *testing.T) {
	r := graph(block{cfg.Call, []int{1}}, block{cfg.Ret, nil}, block{cfg.Jcc, []int{2, 1}})
	r.Pads = []int{2}
	want := []Path{
		{StartEntry, EndCall, []int{0}}, {StartCall, EndReturn, []int{1}},
		{StartLoop, EndLoop, []int{2}}, {StartLoop, EndReturn, []int{2, 1}}, {StartPad, EndLoop,
			[]int{2}}, {StartPad, EndReturn, []int{2, 1}},
	}
	if diff := cmp.Diff(want, decodeAll(t, number(t, r))); diff != "" {
		t.Error(diff)
	}
}

// TestExtraCuts numbers a chain of 40 diamonds, which has 2^40 paths uncut.
func TestExtraCuts(t *testing.T) {
	r := diamonds(40)
	n := number(t, r)
	if n.Total > 1<<32 {
		t.Errorf("%d paths", n.Total)
	}
	rng := rand.New(rand.NewSource(1))
	checkInverse(t, n, r, rng.Uint64)
	extra := 0
	for b := range r.Blocks {
		if _, ok := n.Begin(b, StartExtra); ok {
			extra++
		}
	}
	if extra != 2 {
		t.Errorf("%d extra cuts, want 2: 16 and 32 diamonds before the end", extra)
	}
}

// checkInverse checks that Encode undoes Decode, and that walking a path gives its number: for
// every path, or for some chosen at random when there are many.
func checkInverse(t testing.TB, n *Numbering, r *cfg.Routine, random func() uint64) {
	t.Helper()
	const many = 256
	for i := range min(n.Total, many) {
		id := i
		if n.Total > many {
			id = random() % n.Total
		}
		p, err := n.Decode(id)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := n.Encode(p); err != nil || back != id {
			t.Fatalf("%s: path %d decodes to %+v, which encodes to %d, %v", r.Name, id, p, back,
				err)
		}
		seen := map[int]bool{}
		for k, b := range p.Blocks {
			if seen[b] || k > 0 && !slices.Contains(r.Blocks[p.Blocks[k-1]].Succ, b) {
				t.Fatalf("%s: path %d is no path: %+v", r.Name, id, p)
			}
			seen[b] = true
		}
	}
	if _, err := n.Decode(n.Total); err == nil {
		t.Errorf("%s: path %d decodes", r.Name, n.Total)
	}
}

// drawGraph draws a routine of any shape.
func drawGraph(t *rapid.T) *cfg.Routine {
	count := rapid.IntRange(1, 14).Draw(t, "blocks")
	one := rapid.IntRange(0, count-1)
	r := &cfg.Routine{Name: "drawn", Entry: one.Draw(t, "entry")}
	for range count {
		b := cfg.Block{End: rapid.SampledFrom([]cfg.End{
			cfg.Fall, cfg.Jcc, cfg.Jcc, cfg.Jcc, cfg.Jmp, cfg.Call, cfg.CallInd, cfg.Ret, cfg.Tail,
			cfg.TailInd, cfg.Table, cfg.NoReturn, cfg.Trap,
		}).Draw(t, "end")}
		switch b.End {
		case cfg.Fall, cfg.Jmp, cfg.Call, cfg.CallInd:
			b.Succ = []int{one.Draw(t, "to")}
		case cfg.Jcc:
			b.Succ = []int{rapid.IntRange(-1, count-1).Draw(t, "taken"), one.Draw(t, "not taken")}
		case cfg.Table:
			b.Succ = rapid.SliceOfNDistinct(one, 1, count, rapid.ID).Draw(t, "targets")
			slices.Sort(b.Succ)
		}
		r.Blocks = append(r.Blocks, b)
	}
	r.Pads = rapid.SliceOfNDistinct(one, 0, 2, rapid.ID).Draw(t, "pads")
	return r
}

// TestNumbersAreDense checks on graphs of any shape that the numbers of all paths, found by
// walking, are exactly those below Total, each once.
func TestNumbersAreDense(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawGraph(t)
		n, err := Number(r)
		if err != nil {
			t.Fatal(err)
		}
		if n.Total > 20_000 {
			t.Skip("too many to list")
		}
		seen := make([]int, n.Total)
		for b := range r.Blocks {
			for kind := StartEntry; kind <= StartResume; kind++ {
				if id, ok := n.Begin(b, kind); ok {
					list(n, r, b, id, seen)
				}
			}
		}
		for id, times := range seen {
			if times != 1 {
				t.Fatalf("%d paths have the number %d", times, id)
			}
		}
		for id := range n.Total {
			p, err := n.Decode(id)
			if err != nil {
				t.Fatal(err)
			}
			if back, err := n.Encode(p); err != nil || back != id {
				t.Fatalf("path %d decodes to %+v, which encodes to %d, %v", id, p, back, err)
			}
		}
	})
}

// list counts the paths that go on from block b with the number id so far.
func list(n *Numbering, r *cfg.Routine, b int, id uint64, seen []int) {
	ends := map[End]bool{}
	if end, ok := endOf(&r.Blocks[b]); ok {
		ends[end] = true
	}
	done := map[int]bool{}
	for _, to := range r.Blocks[b].Succ {
		if to < 0 || done[to] {
			continue
		}
		done[to] = true
		inc, stops, end, next := n.Step(b, to)
		if !stops {
			list(n, r, to, id+inc, seen)
			continue
		}
		ends[end] = true
		if _, ok := n.Begin(to, next); !ok || inc != n.Finish(b, end) {
			seen[0] = -1
		}
	}
	for end := range ends {
		seen[id+n.Finish(b, end)]++
	}
}

// TestWalk follows random executions of random graphs and checks that each path walked decodes to
// what was walked.
func TestWalk(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawGraph(t)
		n, err := Number(r)
		if err != nil {
			t.Fatal(err)
		}
		at := r.Entry
		want := Path{Start: StartEntry}
		id, _ := n.Begin(at, StartEntry)
		finish := func(id uint64, end End) {
			want.End = end
			if got, err := n.Decode(id); err != nil || !cmp.Equal(got, want) {
				t.Fatalf("walked %+v, decoded %+v, %v", want, got, err)
			}
		}
		for range 60 {
			want.Blocks = append(want.Blocks, at)
			succ := r.Blocks[at].Succ
			if len(succ) == 0 {
				end, _ := endOf(&r.Blocks[at])
				finish(id+n.Finish(at, end), end)
				return
			}
			to := rapid.SampledFrom(succ).Draw(t, "way")
			if to < 0 {
				finish(id+n.Finish(at, EndTail), EndTail)
				return
			}
			inc, ends, end, next := n.Step(at, to)
			id += inc
			at = to
			if ends {
				finish(id, end)
				var ok bool
				if id, ok = n.Begin(at, next); !ok {
					t.Fatalf("no path starts at %d by %v", at, next)
				}
				want = Path{Start: next}
			}
		}
	})
}

func TestErrors(t *testing.T) {
	if _, err := Number(&cfg.Routine{Name: "empty"}); err == nil {
		t.Error("a routine without blocks is numbered")
	}
	if _, err := Number(graph(block{cfg.Unresolved, nil})); err == nil {
		t.Error("a routine with an unresolved jump is numbered")
	}
	n := number(t, graph(block{cfg.Jcc, []int{1, 2}}, block{cfg.Jmp, []int{0}},
		block{cfg.Ret, nil}))
	for _, p := range []Path{
		{},
		{StartCall, EndReturn, []int{0, 2}},
		{StartEntry, EndTail, []int{0, 2}},
		{StartEntry, EndReturn, []int{0, 1, 0, 2}},
		{StartEntry, EndReturn, []int{2, 0}},
		{StartEntry, EndReturn, []int{0, 7}},
		{StartEntry, EndReturn, []int{-3}},
	} {
		if id, err := n.Encode(p); err == nil {
			t.Errorf("%+v encodes to %d", p, id)
		}
	}
	if _, ends, end, next := n.Step(2, 0); !ends || end != EndCut || next != StartResume {
		t.Errorf("no edge: %v, %v, %v; want a cut", ends, end, next)
	}
}

// TestRealPrograms numbers every exact routine of programs as a distribution ships them.
func TestRealPrograms(t *testing.T) {
	for _, path := range []string{"/usr/bin/bash", "/usr/bin/python3"} {
		t.Run(path, func(t *testing.T) {
			if testing.Short() && path != "/usr/bin/bash" {
				t.Skip("short: bash alone")
			}
			program := recoverFile(t, path)
			start := time.Now()
			numberings := make([]*Numbering, len(program.Routines))
			var most uint64
			extra := 0
			for i, r := range program.Routines {
				if r.LeftOut != "" {
					continue
				}
				numberings[i] = number(t, r)
				most = max(most, numberings[i].Total)
				for _, s := range numberings[i].starts {
					if s.kind == StartExtra {
						extra++
					}
				}
			}
			t.Logf("at most %d paths a routine, %d extra cuts, %v", most, extra,
				time.Since(start).Round(time.Millisecond))
			if most > 1<<32 {
				t.Errorf("a routine has %d paths: more than 32 bits", most)
			}
			rng := rand.New(rand.NewSource(1))
			for i, n := range numberings {
				if n != nil && (n.Total > 1<<16 || i%7 == 0) {
					checkInverse(t, n, program.Routines[i], rng.Uint64)
				}
			}
		})
	}
}

// recoverFile recovers the routines of a program.
func recoverFile(t *testing.T, path string) *cfg.Program {
	t.Helper()
	if _, err := os.Stat(path); err != nil {
		testenv.Missing(t, err)
	}
	im, err := image.OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { im.Close() })
	program, err := recovery.Recover(im)
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// FuzzNumber makes a graph of the input: any graph can be numbered, or yields an error.
func FuzzNumber(f *testing.F) {
	f.Add([]byte{1, 1, 2, 2, 3, 3, 5})
	f.Add([]byte{3, 1, 8, 2, 0, 1, 255, 5, 9})
	f.Fuzz(func(t *testing.T, data []byte) {
		r := &cfg.Routine{Name: "fuzzed"}
		count := len(data)/3 + 1
		for ; len(data) >= 3; data = data[3:] {
			b := cfg.Block{End: cfg.End(data[0] % 12)}
			switch b.End {
			case cfg.Fall, cfg.Jmp, cfg.Call, cfg.CallInd:
				b.Succ = []int{int(data[1]) % count}
			case cfg.Jcc:
				b.Succ = []int{int(data[1])%(count+1) - 1, int(data[2]) % count}
			case cfg.Table:
				for to := int(data[1]) % count; to < count && len(b.Succ) < int(data[2]); to++ {
					b.Succ = append(b.Succ, to)
				}
			}
			r.Blocks = append(r.Blocks, b)
		}
		r.Blocks = append(r.Blocks, cfg.Block{End: cfg.Ret})
		n, err := Number(r)
		if err != nil {
			return
		}
		rng := rand.New(rand.NewSource(int64(n.Total)))
		checkInverse(t, n, r, rng.Uint64)
	})
}

func BenchmarkStep(b *testing.B) {
	n := number(b, graph(block{cfg.Jcc, []int{1, 2}}, block{cfg.Jmp, []int{0}},
		block{cfg.Ret, nil}))
	var sum uint64
	for b.Loop() {
		inc, _, _, _ := n.Step(0, 1)
		sum += inc
	}
	_ = fmt.Sprint(sum)
}
