package planner_test

import (
	"slices"
	"strings"
	"testing"

	"wpptrace/loader/cfg"
	"wpptrace/loader/plan"
	"wpptrace/loader/plan/planner"
)

// dearLeaves are two leaves that need a single-stepped probe each, as anybody may call them, and a
// loop.
const dearLeaves = `
	int spins(int n) { do asm volatile("" : "+r"(n)); while (--n); return n; }
	int first_leaf(int n) { asm volatile(".rept 6\nadd $1, %0\n.endr" : "+r"(n)); return n; }
	int second_leaf(int n) { asm volatile(".rept 6\nsub $1, %0\n.endr" : "+r"(n)); return n; }
	int (*volatile pointers[])(int) = {first_leaf, second_leaf};
	int main(int argc, char **argv) { return spins(argc) + pointers[argc](argc); }`

// dearLeavesAtWork has two such leaves called in loops, and more than them the innermost loop.
const dearLeavesAtWork = `
	__attribute__((noinline)) int first_leaf(int n) { asm volatile(".rept 6\nadd $1, %0\n"
		".endr" : "+r"(n)); return n; }
	__attribute__((noinline)) int second_leaf(int n) { asm volatile(".rept 6\nsub $1, %0\n"
		".endr" : "+r"(n)); return n; }
	int (*volatile pointers[])(int) = {first_leaf, second_leaf};
	int main(int n, char **argv) {
		int sum = 0;
		for (int i = 0; i < n; i++)
			for (int j = 0; j < n; j++)
				for (int k = 0; k < n; k++) {
					sum += first_leaf(i) + second_leaf(j);
					for (int l = 0; l < n; l++)
						for (int m = 0; m < n; m++)
							asm volatile(".rept " WORK "\nnop\n.endr");
				}
		return sum;
	}`

// TestDearLeavesByEstimate is TestDearLeaves where nothing was counted.
func TestDearLeavesByEstimate(t *testing.T) {
	for work, leftOut := range map[string]int{"60": 2, "35": 1, "0": 0} {
		p := planned(t, compile(t, dearLeavesAtWork, "-O1", "-DWORK=\""+work+"\""),
			planner.Options{})
		var names []string
		for _, r := range p.Routines {
			if !r.Traced() && strings.HasSuffix(r.Symbol, "_leaf") {
				names = append(names, r.Symbol)
			}
		}
		if len(names) != leftOut {
			t.Errorf("%s instructions in the innermost loop: %v are left out, want %d", work, names,
				leftOut)
		}
	}
}

// TestBusy: a small program may have some single-stepped hits, whatever their share; what a process
// spends its time in may not.
func TestBusy(t *testing.T) {
	path := compile(t, dearLeavesAtWork, "-O1", "-DWORK=\"0\"")
	for busy, want := range map[bool]bool{false: true, true: false} {
		p := planned(t, path, planner.Options{Busy: busy})
		stepped, all := 0.0, 0.0
		for i := range p.Sites {
			all += p.Sites[i].Expected
			if p.Sites[i].Stepped {
				stepped += p.Sites[i].Expected
			}
		}
		if got := stepped > all/20; got != want {
			t.Errorf("busy %v: %v of %v hits are single-stepped", busy, stepped, all)
		}
	}
}

// counted are weights by which each routine was entered so often, and each of its blocks ran as
// often; what is not named, once.
func counted(p *cfg.Program, entries map[string]uint64) *planner.Weights {
	w := &planner.Weights{Blocks: map[uint64]uint64{}, Entries: map[uint64]uint64{}}
	for _, r := range p.Routines {
		n := max(entries[r.Symbol], 1)
		w.Entries[r.Addr] = n
		for b := range r.Blocks {
			w.Blocks[r.Blocks[b].Lo] = n
		}
	}
	return w
}

// TestDearLeaves: of those entered often, so many are left out as make up to one in a hundred of
// all instructions, however many rounds that takes; none where their hits, as counted, are few.
func TestDearLeaves(t *testing.T) {
	c := compile(t, dearLeaves, "-O2")
	for _, test := range []struct {
		name    string
		entries map[string]uint64
		leftOut int
	}{
		{"both may be lost", map[string]uint64{"spins": 1e9, "first_leaf": 1e6, "second_leaf": 1e6},
			2},
		{"only one may be lost",
			map[string]uint64{"spins": 1e9, "first_leaf": 3e6, "second_leaf": 3e6}, 1},
		{"few hits", map[string]uint64{"spins": 1e8, "first_leaf": 400, "second_leaf": 400}, 0},
		{"few hits are all that there are",
			map[string]uint64{"first_leaf": 400, "second_leaf": 400}, 0},
	} {
		p := planned(t, c, planner.Options{Weights: counted(c, test.entries)})
		leaves := slices.DeleteFunc(slices.Clone(p.Routines), func(r *plan.Routine) bool {
			return r.Traced() || r.Symbol != "first_leaf" && r.Symbol != "second_leaf"
		})
		if len(leaves) != test.leftOut {
			t.Errorf("%s: %d leaves are left out, want %d", test.name, len(leaves), test.leftOut)
		}
	}
}
