package route_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"wpptrace/decoder/route"
	"wpptrace/loader/cfg/recovery"
	"wpptrace/loader/image"
	"wpptrace/loader/plan"
	"wpptrace/loader/plan/planner"
)

// source has a loop, a switch, a recursion, calls of external code, tail jumps and a routine that
// has no event.
const source = `
#include <stdlib.h>
volatile int sink;
__attribute__((noinline)) static void quiet(void) { sink = 1; }
__attribute__((noinline)) static int pick(int n)
{
	switch (n & 7) {
	case 0: return sink;
	case 1: sink = 3; return 5;
	case 2: return n * sink;
	case 3: return 9;
	case 4: return sink - n;
	case 5: sink++; return 1;
	}
	quiet();
	return 2;
}
__attribute__((noinline)) int depth(int n) { return n ? depth(n - 1) + pick(n) : 0; }
__attribute__((noinline)) int sum(const char *p, const char *end)
{
	int s = 0;
	while (p != end)
		s += *p++;
	return s;
}
__attribute__((noinline)) int hands_on(int n) { return n > 3 ? depth(n) : pick(n); }
int main(int argc, char **argv)
{
	for (int i = 0; i < argc; i++)
		sink += hands_on(i) + rand();
	return sum(argv[0], argv[0] + argc);
}`

var program = sync.OnceValues(func() (*route.Program, error) {
	dir, err := os.MkdirTemp("", "route")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	in, out := filepath.Join(dir, "in.c"), filepath.Join(dir, "program")
	if err := os.WriteFile(in, []byte(source), 0o644); err != nil {
		return nil, err
	}
	if b, err := exec.Command("gcc", "-O2", "-o", out, in).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("gcc: %w: %s", err, b)
	}
	im, err := image.OpenFile(out)
	if err != nil {
		return nil, err
	}
	defer im.Close()
	c, err := recovery.Recover(im)
	if err != nil {
		return nil, err
	}
	p, err := planner.Make(c, planner.Options{})
	if err != nil {
		return nil, err
	}
	return route.New(p)
})

func routes(t *testing.T) *route.Program {
	t.Helper()
	p, err := program()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func named(p *route.Program, name string) *route.Routine {
	return p.Routines[slices.IndexFunc(p.Routines,
		func(r *route.Routine) bool { return r.Plan.Symbol == name })]
}

// positions calls do for the positions at a routine's entry and behind each of its blocks.
func positions(r *route.Routine, do func(p *route.Position)) {
	do(r.AtEntry())
	for b := range r.Blocks {
		do(r.At(b, 0))
		if s := r.Site(b); s != nil && s.Condition < plan.NoCondition {
			do(r.At(b, 1))
		}
	}
}

// reachable lists, by the definition, the blocks to which control can come from a position without
// passing a site or a call of a routine that has events.
func reachable(p *route.Position) map[int]bool {
	r, found := p.Routine, map[int]bool{}
	var visit func(b int)
	visit = func(b int) {
		if b == route.Exit || found[b] {
			return
		}
		found[b] = true
		if r.Site(b) != nil {
			return
		}
		if callee := r.Callees[b]; callee != nil && r.Blocks[b].CallReturns() {
			if _, free := callee.FreeRun(); !free {
				return
			}
		}
		for _, n := range r.Blocks[b].After() {
			visit(n)
		}
	}
	for _, n := range p.Next {
		visit(n)
	}
	return found
}

// TestRoutesAreThoseOfTheDefinition: a region has the blocks that a search by the definition finds,
// and the route to each leads along edges past no site.
func TestRoutesAreThoseOfTheDefinition(t *testing.T) {
	for _, r := range routes(t).Routines {
		if !r.Plan.Traced() {
			continue
		}
		positions(r, func(p *route.Position) {
			want := reachable(p)
			for b := range r.Blocks {
				if got := p.Free().Reaches(b); got != want[b] {
					t.Fatalf("%s: block %d reached from %d: %v, want %v", r.Plan.Name, b, p.Block,
						got, want[b])
				}
				checkRoute(t, p, b)
			}
		})
	}
}

func checkRoute(t *testing.T, p *route.Position, b int) {
	t.Helper()
	way, at := p.Free().Route(b), p.Next
	for i, n := range way {
		if !slices.Contains(at, n) {
			t.Fatalf("%s: the route %v from %d leaves the edges at %d", p.Routine.Plan.Name, way,
				p.Block, n)
		}
		if i < len(way)-1 && p.Routine.Site(n) != nil {
			t.Fatalf("%s: the route %v from %d passes the site of %d", p.Routine.Plan.Name, way,
				p.Block, n)
		}
		at = p.Routine.Blocks[n].After()
	}
	if to := p.To(b, false); to != nil && way == nil {
		t.Fatalf("%s: a transition from %d to %d without a route", p.Routine.Plan.Name, p.Block, b)
	}
}

// TestTransitionsEndWholePaths: a path that both begins and ends on a route has a number, and it is
// that of a path along the route.
func TestTransitionsEndWholePaths(t *testing.T) {
	paths := 0
	for _, r := range routes(t).Routines {
		if !r.Plan.Traced() {
			continue
		}
		positions(r, func(p *route.Position) {
			for _, o := range p.Outs(false) {
				for i, e := range o.Transition.Emissions {
					if e.Kind != route.EmitPath || i == o.Transition.First {
						continue
					}
					if _, err := e.Routine.Numbers.Decode(e.Number); err != nil {
						t.Errorf("%s: path %d: %v", e.Routine.Plan.Name, e.Number, err)
					}
					paths++
				}
			}
		})
	}
	if paths == 0 {
		t.Error("no path ends on a route out: the test tests nothing")
	}
}

// TestFreeRuns: a routine that has no event has one run, which enters and leaves it.
func TestFreeRuns(t *testing.T) {
	p, runs := routes(t), 0
	for _, r := range p.Routines {
		if !r.Plan.Traced() {
			continue
		}
		run, ok := r.FreeRun()
		if ok && !r.Plan.ProbeFree {
			t.Errorf("%s runs without an event, but not by the plan", r.Plan.Name)
		}
		if !ok {
			continue
		}
		runs++
		if first := run[0]; first.Kind != route.EmitEnter || first.Routine != r {
			t.Errorf("%s: its run begins with %+v", r.Plan.Name, first)
		}
		if last := run[len(run)-1]; last.Kind != route.EmitLeave {
			t.Errorf("%s: its run ends with %+v", r.Plan.Name, last)
		}
	}
	if runs == 0 {
		t.Error("no routine runs without an event: the test tests nothing")
	}
}

func TestLocate(t *testing.T) {
	r := named(routes(t), "pick")
	for b := range r.Blocks {
		for k := range r.Blocks[b].Insns {
			pc := r.Blocks[b].Insns[k].Addr + r.Plan.Offset()
			block, insn, ok := r.Locate(pc)
			if !ok || block != b || insn != k {
				t.Errorf("instruction %d of block %d is located at %d of %d, %v", k, b, insn, block,
					ok)
			}
		}
	}
	if _, _, ok := r.Locate(named(routes(t), "main").Address()); ok {
		t.Error("an instruction of another routine is located")
	}
}

func TestTailJumps(t *testing.T) {
	p := routes(t)
	from, to := named(p, "hands_on"), named(p, "depth")
	if !from.MayJumpOnTo(to) {
		t.Error("hands_on does not jump to depth")
	}
	if to.MayJumpOnTo(from) {
		t.Error("depth jumps to hands_on")
	}
	if run, ok := to.Relay(to); !ok || len(run) != 0 {
		t.Errorf("a relay of none: %v, %v", run, ok)
	}
}

// TestCallsAreFoundByTheirReturns: each call of a traced routine is known by its return address.
func TestCallsAreFoundByTheirReturns(t *testing.T) {
	p, n := routes(t), 0
	for _, r := range p.Routines {
		for b := range r.Blocks {
			if !r.Plan.Traced() || !r.Blocks[b].IsCall() {
				continue
			}
			n++
			if c, ok := p.CallTo(r.ReturnTo(b)); !ok || c.Routine != r || c.Block != b {
				t.Errorf("%s: the call of block %d is %+v, %v", r.Plan.Name, b, c, ok)
			}
		}
	}
	if n == 0 {
		t.Error("there is no call: the test tests nothing")
	}
}

func ExamplePosition_To() {
	p, err := program()
	if err != nil {
		fmt.Println(err)
		return
	}
	r := named(p, "pick")
	first := slices.IndexFunc(p.Plan.Sites,
		func(s plan.Site) bool { return s.Routine == r.ID && s.First })
	to := r.AtEntry().To(p.Plan.Sites[first].Block, false)
	fmt.Println("a route leads to its first site:", to != nil)
	fmt.Println("a path begins on it:", to.Fresh)
	// Output:
	// a route leads to its first site: true
	// a path begins on it: true
}
