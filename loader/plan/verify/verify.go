package verify

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"wpptrace/loader/cfg"
	"wpptrace/loader/plan"
)

// A Way is a sequence of blocks, by their addresses, that runs without an event of those between
// the first and the last; RoutineEnd stands for the end of an activation.
type Way []uint64

// RoutineEnd is the place in a Way where the routine is left.
const RoutineEnd = 0

// A Fault is a place where a probe-free route is not sound.
type Fault struct {
	Routine string
	Addr    uint64 // of the routine
	What    string
	Ways    []Way // two that no event distinguishes; or the one without an event
}

// String is the fault in one line.
func (f Fault) String() string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s at %x: %s", f.Routine, f.Addr, f.What)
	for i, way := range f.Ways {
		out.WriteString([]string{": ", ", and "}[min(i, 1)])
		for k, addr := range way {
			if k > 0 {
				out.WriteString(" -> ")
			}
			if addr == RoutineEnd {
				out.WriteString("end")
			} else {
				fmt.Fprintf(&out, "%x", addr)
			}
		}
	}
	return out.String()
}

// Plan returns what is wrong with a plan, by the addresses of routines: nil if it is sound. Of each
// kind of fault it names one a routine. Cost: the sum of what can run without an event after each
// event, in a sound plan nearly linear in the program's size.
func Plan(p *plan.Plan) []Fault {
	v := &verifier{plan: p}
	v.prepare()
	v.classify()
	for _, r := range v.traced {
		v.checkSites(r)
		v.checkSameActivation(r)
		v.checkNextCalls(r)
		v.checkCallees(r)
		v.checkCalls(r)
		v.checkShifting(r)
		v.checkWitnesses(r)
		v.checkRounds(r)
		v.checkWays(r)
		v.checkFirstCalls(r)
	}
	v.checkTable()
	v.checkOnlyCallers()
	v.findOpen()
	v.findOutgoing()
	v.findRestarted()
	for _, r := range v.traced {
		v.checkOpenCalls(r)
		v.checkLandings(r)
		v.checkAnew(r)
	}
	v.checkCircles()
	v.checkRows()
	v.checkUnseen()
	slices.SortStableFunc(v.faults, func(a, b Fault) int { return cmp.Compare(a.Addr, b.Addr) })
	return v.faults
}

// A verifier is the state of Plan.
type verifier struct {
	plan     *plan.Plan
	routines []*routine // by plan.Routine.ID
	traced   []*routine
	faults   []Fault
}

// A routine is what is found out of a traced routine.
type routine struct {
	*plan.Routine
	v       *verifier
	entries []int // blocks
	sites   []*plan.Site
	kinds   []plan.Callee // by block
	again   []int         // blocks that follow calls which may return again
	callees []*routine    // by block: the traced routine that it calls or jumps to
	first   []bool        // by block: it can be reached from the entry without an event
	// an end is not followed by the next activation: the callers imply it
	probeFree bool
	runs      *bool // see runsProbeFree

	entered    bool // external code may enter it
	returnsOut bool // it may return there: that has entered it, or what jumps to it
	// after some event code may be called back from it, or, once it has ended without another, from
	// its callers
	ambiguous bool
	// what is called back around its end without an event may come from it or from what it was
	// called by
	open     bool
	external bool // external code may run in its course
	// external code may enter it, or those by way of which a probe-free route leads to it
	restarted bool

	walker walker
}

// prepare makes the routines with their sites.
func (v *verifier) prepare() {
	v.routines = make([]*routine, len(v.plan.Routines))
	for i, pr := range v.plan.Routines {
		n := len(pr.Blocks)
		r := &routine{Routine: pr, v: v, kinds: make([]plan.Callee, n),
			callees: make([]*routine, n)}
		v.routines[i] = r
		if !pr.Traced() {
			continue
		}
		v.traced = append(v.traced, r)
		r.entries = append([]int{pr.Entry}, pr.Others...)
		r.sites, r.probeFree, r.walker = make([]*plan.Site, n), pr.ProbeFree, walker{r: r,
			seen: newByNode[int](r)}
	}
	for i := range v.plan.Sites {
		v.placeSite(i)
	}
	for _, r := range v.traced {
		r.markFirst()
	}
}

// placeSite gives a site to its block.
func (v *verifier) placeSite(i int) {
	s := &v.plan.Sites[i]
	if s.Routine < 0 || s.Routine >= len(v.routines) {
		v.faults = append(v.faults, Fault{What: fmt.Sprintf("the probe at %x is of routine %d, "+
			"and there are %d", s.Addr, s.Routine, len(v.routines))})
		return
	}
	r := v.routines[s.Routine]
	switch {
	case !r.Traced():
		r.fault(fmt.Sprintf("it is not traced and has a probe at %x", s.Addr))
		return
	case s.Block < 0 || s.Block >= len(r.Blocks) || s.Insn < 0 ||
		s.Insn >= len(r.Blocks[s.Block].Insns):
		r.fault(fmt.Sprintf("the probe at %x is of no instruction", s.Addr))
		return
	case r.sites[s.Block] != nil:
		r.fault(fmt.Sprintf("a block has probes at %x and %x", r.sites[s.Block].Addr, s.Addr))
	case i > 0 && v.plan.Sites[i-1].Addr >= s.Addr:
		r.fault(fmt.Sprintf("the probe at %x comes after that at %x", s.Addr,
			v.plan.Sites[i-1].Addr))
	case r.Site(s.Block) != s:
		r.fault(fmt.Sprintf("the probe at %x is not that of its block", s.Addr))
	}
	r.sites[s.Block] = s
}

func (r *routine) fault(what string, ways ...Way) {
	r.v.faults = append(r.v.faults, Fault{Routine: r.Name, Addr: r.Addr, What: what, Ways: ways})
}

// way gives the addresses of nodes.
func (r *routine) way(nodes ...int) Way {
	way := make(Way, len(nodes))
	for i, n := range nodes {
		if n == cfg.Exit {
			way[i] = RoutineEnd
		} else {
			way[i] = r.Blocks[n].Lo
		}
	}
	return way
}

// A byNode has a value for each node of a routine: its blocks, and cfg.Exit.
type byNode[T any] []T

func newByNode[T any](r *routine) byNode[T] { return make(byNode[T], len(r.Blocks)+1) }

func (l byNode[T]) at(n int) *T { return &l[n-cfg.Exit] }

// markFirst finds what can be reached from the entry without an event.
func (r *routine) markFirst() {
	r.first = make([]bool, len(r.Blocks))
	queue := slices.Clone(r.entries)
	for _, b := range queue {
		r.first[b] = true
	}
	for ; len(queue) > 0; queue = queue[1:] {
		if r.sites[queue[0]] != nil {
			continue
		}
		for _, n := range r.Blocks[queue[0]].After() {
			if n != cfg.Exit && !r.first[n] {
				r.first[n] = true
				queue = append(queue, n)
			}
		}
	}
}
