package loads_test

import (
	"slices"
	"testing"

	"wpptrace/internal/testenv"
	"wpptrace/loader/cfg/recovery"
	"wpptrace/loader/image"
	"wpptrace/loader/loads"
	"wpptrace/loader/plan"
	"wpptrace/loader/plan/planner"
	"wpptrace/loader/x86"
)

// planned plans a program as recordings of values do.
func planned(t testing.TB, path string) *plan.Plan {
	t.Helper()
	im, err := image.OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	defer im.Close()
	program, err := recovery.Recover(im)
	if err != nil {
		t.Fatal(err)
	}
	p, err := planner.Make(program, planner.Options{EveryRound: true})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestMostReads: of real programs nearly all loads ahead are read by no more reads than there are.
func TestMostReads(t *testing.T) {
	for _, path := range []string{"/bin/gzip", "/bin/bash"} {
		if !testenv.Have(t, path) {
			continue
		}
		p := planned(t, path)
		l, err := loads.Make(p, loads.Options{Extra: true})
		if err != nil {
			t.Fatal(err)
		}
		f := loads.FiguresOf(p, loads.Options{Extra: true})
		t.Logf("%s: %d sites, %d for values alone, %d steps; %+v", path, len(p.Sites),
			len(l.Extra), len(l.Steps), f)
		if f.MostReads > loads.MostReads || f.NotRead*100 > f.Read || f.Reads > 2 || f.Steps > 10 {
			t.Errorf("%s: %+v", path, f)
		}
	}
}

// TestExtraBehindHidden: probes for values alone stand behind loads whose addresses no program
// computes, and behind a routine that returns what malloc has, where no hit is near.
func TestExtraBehindHidden(t *testing.T) {
	path := testenv.CompileC(t, `
		#include <stdlib.h>
		struct node { struct node *next; long key; } empty, *plain = &empty;
		struct node *buckets[61] = {[0 ... 60] = &empty};
		__attribute__((noipa)) long same(long *key) { return *key; }
		__attribute__((noipa)) void *get(void) { return malloc(16); }
		long remainder_of(long key) {
			struct node *n = buckets[(unsigned long)key % 61];
			return same(&n->key) + n->key - same(&n->key);
		}
		long computed(void) {
			struct node *n = plain;
			return same(&n->key) + n->key - same(&n->key);
		}
		void got(long key) {
			struct node *n = get();
			long a = same(&key), b = same(&a), c = same(&b), d = same(&c), e = same(&d);
			a = same(&e), b = same(&a), c = same(&b), d = same(&c), e = same(&d);
			n->key = same(&e);
		}
		int main(int argc, char **argv) {
			got(argc);
			return remainder_of(argc) + computed();
		}`, "-O0")
	p := planned(t, path)
	l, err := loads.Make(p, loads.Options{Extra: true})
	if err != nil {
		t.Fatal(err)
	}
	has := map[string]bool{}
	for _, s := range l.Extra {
		has[p.Routines[s.Routine].Name] = true
	}
	for name, want := range map[string]bool{"remainder_of": true, "computed": false, "got": true} {
		if has[name] != want {
			t.Errorf("%s has a probe for values alone: %v", name, has[name])
		}
	}
}

// TestExtraIsEmulated: probes for values alone are on instructions that the kernel emulates, one at
// each, and none is one of the plan's.
func TestExtraIsEmulated(t *testing.T) {
	if !testenv.Have(t, "/bin/gzip") {
		t.Skip("there is no gzip")
	}
	p := planned(t, "/bin/gzip")
	l, err := loads.Make(p, loads.Options{Extra: true})
	if err != nil {
		t.Fatal(err)
	}
	if len(l.Looks) != len(p.Sites)+len(l.Extra) || len(l.Extra) == 0 {
		t.Fatalf("%d looks of %d sites and %d more", len(l.Looks), len(p.Sites), len(l.Extra))
	}
	taken := map[uint64]bool{}
	for _, s := range p.Sites {
		taken[s.Addr] = true
	}
	for _, s := range l.Extra {
		r := p.Routines[s.Routine]
		q := &r.Blocks[s.Block].Insns[s.Insn]
		if q.Addr != s.Addr || q.Class(r.Code(q)) != x86.Emulated || taken[s.Addr] ||
			q.Condition() != s.Condition {
			t.Errorf("a probe for values alone at %#x: %+v", s.Addr, s)
		}
		taken[s.Addr] = true
	}
}

// TestAppend: a part's programs do the same when they are a part.
func TestAppend(t *testing.T) {
	if !testenv.Have(t, "/bin/gzip") {
		t.Skip("there is no gzip")
	}
	made := func() *loads.Plan {
		l, err := loads.Make(planned(t, "/bin/gzip"), loads.Options{Extra: true})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	alone, both := made(), made()
	if err := both.Append(made()); err != nil {
		t.Fatal(err)
	}
	sites, extra := len(alone.Base.Sites), len(alone.Extra)
	offset := both.Base.Parts[1].Offset
	if len(both.Looks) != 2*len(alone.Looks) || len(both.After) != 2*len(alone.After) {
		t.Fatalf("%d looks, %d continuations", len(both.Looks), len(both.After))
	}
	var registers [17]uint64
	for i := range registers {
		registers[i] = uint64(i) << 20
	}
	for look := range alone.Looks {
		in := look + sites // of the part
		if look >= sites {
			in += extra
		}
		for outcome := range 2 {
			var want, got []uint64
			left := alone.Run(look, outcome, true, &registers, 0, everywhere{alone.After, 0},
				func(r *loads.Read) { want = append(want, r.Addr) })
			also := both.Run(in, outcome, true, &registers, 0, everywhere{both.After, offset},
				func(r *loads.Read) { got = append(got, r.Addr) })
			if left != also || !slices.Equal(got, want) {
				t.Fatalf("look %d reads %x as a part, %x alone", look, got, want)
			}
		}
	}
}

// TestBehind: where a hit shows all registers it reads, besides, at most 8 places that were loaded
// before it.
func TestBehind(t *testing.T) {
	if !testenv.Have(t, "/bin/gzip") {
		t.Skip("there is no gzip")
	}
	l, err := loads.Make(planned(t, "/bin/gzip"), loads.Options{Extra: true})
	if err != nil {
		t.Fatal(err)
	}
	programs := 0
	var registers [17]uint64
	for i := range registers {
		registers[i] = uint64(i) << 20
	}
	for look := range l.Looks {
		count := func(whole bool) (n int) {
			l.Run(look, 0, whole, &registers, 0, everywhere{after: l.After},
				func(*loads.Read) { n++ })
			return n
		}
		more := count(true) - count(false)
		if has := l.Looks[look].Behind > 0; has {
			programs++
		} else if more != 0 {
			t.Errorf("look %d has no program for what was loaded before, and makes %d reads", look,
				more)
		}
		if more > 8 {
			t.Errorf("look %d makes %d reads of what was loaded before", look, more)
		}
	}
	if programs < 50 {
		t.Errorf("%d programs", programs)
	}
}

// everywhere is a process whose memory holds zeroes, and whose images begin at the addresses of a
// plan, less offset.
type everywhere struct {
	after  map[uint64]uint32
	offset uint64
}

func (everywhere) Read(_ uint64, to []byte) bool {
	clear(to)
	return true
}

func (e everywhere) Continuation(addr uint64) (step uint32, ok bool) {
	step, ok = e.after[addr+e.offset]
	return step, ok
}

func (everywhere) Bias(int) uint64 { return 0 }

// BenchmarkMake plans the loads of a large program.
func BenchmarkMake(b *testing.B) {
	const path = "/bin/bash"
	if !testenv.Have(b, path) {
		b.Skip("there is no " + path)
	}
	p := planned(b, path)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := loads.Make(p, loads.Options{}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(p.Sites)), "sites")
}
