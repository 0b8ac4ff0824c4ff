package overlapping

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"

	"wpptrace/internal/saturating"
	"wpptrace/internal/text"
	"wpptrace/loader/cfg"
	"wpptrace/loader/paths/overlap"
	"wpptrace/loader/plan"
	"wpptrace/query/names"
	"wpptrace/query/report"
)

// A Report says how many overlapping paths of a degree there may be. Its JSON form grows, within a
// version, by new members only. Numbers of paths stop at 2^64-1.
type Report struct {
	SchemaVersion int    `json:"schema_version"`
	Program       string `json:"program"`                // the file that was planned
	Degree        int    `json:"degree"`                 // of the overlapping paths
	Most          int    `json:"greatest_useful_degree"` // of any loop or call
	// loops that can be entered other than at their head
	LoopsLeftOut int `json:"loops_left_out"`
	// calls through a pointer, of external code or of routines that are not traced
	CallsLeftOut int       `json:"calls_left_out"`
	Routines     []Overlap `json:"routines"` // that have loops or calls, as far as they are traced
}

// An Overlap is a routine with its overlapping paths.
type Overlap struct {
	Name  string `json:"name"`          // demangled
	Entry uint64 `json:"entry"`         // link-time address
	Paths uint64 `json:"acyclic_paths"` // all
	Loops []Loop `json:"loops"`         // by their heads
	Calls []Call `json:"calls"`         // direct ones of traced routines, by their addresses
}

// A Loop is a loop with its overlapping paths. Paths over its back edges are those that end with
// one.
type Loop struct {
	Head       uint64  `json:"head"`          // link-time address
	LeftOut    *string `json:"left_out"`      // why paths over its back edges are not told apart
	Paths      uint64  `json:"paths"`         // over its back edges
	Extensions *uint64 `json:"extensions"`    // ways to go on behind one; null where it is left out
	Overlaps   *uint64 `json:"overlapping"`   // the product of these; null where it is left out
	Most       *int    `json:"useful_degree"` // a greater one tells no more apart; null: left out
}

// A Call is a direct call of a traced routine, with its overlapping paths.
type Call struct {
	Address  uint64 `json:"address"`       // link-time, of the call's block
	Callee   string `json:"callee"`        // demangled
	Into     uint64 `json:"into"`          // overlapping paths into the callee: type I
	Back     uint64 `json:"back"`          // back from it: type II, jumps of the callee left out
	MostInto int    `json:"useful_into"`   // a greater degree tells no more of these apart,
	MostBack int    `json:"useful_return"` // or of those
}

// New counts the overlapping paths of a plan's traced routines. name is the program's file.
func New(p *plan.Plan, name string, degree int) (*Report, error) {
	r := &Report{SchemaVersion: report.SchemaVersion, Program: name, Degree: degree,
		Routines: []Overlap{}}
	graphs := map[*cfg.Routine]*routine{}
	for _, x := range p.Routines {
		if !x.Traced() {
			continue
		}
		g, err := overlap.Of(x.Routine)
		if err != nil {
			return nil, err
		}
		n, err := g.Number(degree)
		if err != nil {
			return nil, err
		}
		graphs[x.Routine] = &routine{g, n}
	}
	for _, x := range p.Routines {
		of := graphs[x.Routine]
		if of == nil {
			continue
		}
		o := Overlap{Name: x.Name, Entry: x.Addr, Paths: of.graph.Numbering().Total,
			Loops: []Loop{}, Calls: []Call{}}
		if err := r.addLoops(&o, x.Routine, of); err != nil {
			return nil, err
		}
		for b := range x.Blocks {
			if !x.Blocks[b].CallReturns() {
				continue
			}
			to := calleeOf(p.Program, x.Routine, b)
			if graphs[to] == nil {
				r.CallsLeftOut++
				continue
			}
			c, err := newCall(x.Routine, b, of, to, graphs[to])
			if err != nil {
				return nil, err
			}
			r.Most = max(r.Most, c.MostInto, c.MostBack)
			o.Calls = append(o.Calls, c)
		}
		if len(o.Loops)+len(o.Calls) > 0 {
			r.Routines = append(r.Routines, o)
		}
	}
	return r, nil
}

// A routine has its graph and its extensions.
type routine struct {
	graph *overlap.Graph
	of    *overlap.Numbering
}

func (r *Report) addLoops(o *Overlap, from *cfg.Routine, of *routine) error {
	for i, l := range of.graph.Loops() {
		loop := Loop{Head: from.Blocks[l.Head].Lo, Paths: of.graph.OverBackEdges(i)}
		if l.LeftOut != "" {
			loop.LeftOut = &l.LeftOut
			r.LoopsLeftOut++
		} else {
			x, err := of.of.Loop(i)
			if err != nil {
				return err
			}
			all := saturating.Mul(loop.Paths, x.Total)
			loop.Extensions, loop.Overlaps, loop.Most = &x.Total, &all, &x.Most
			r.Most = max(r.Most, x.Most)
		}
		o.Loops = append(o.Loops, loop)
	}
	return nil
}

func newCall(from *cfg.Routine, b int, of *routine, to *cfg.Routine, callee *routine) (c Call,
	err error) {
	into, err := callee.of.From(to.Entry)
	if err != nil {
		return c, err
	}
	behind, err := of.of.From(from.Blocks[b].Succ[0])
	if err != nil {
		return c, err
	}
	return Call{Address: from.Blocks[b].Lo, Callee: to.Name,
		Into:     saturating.Mul(of.graph.Reaching(b), into.Total),
		Back:     saturating.Mul(callee.graph.Returning(), behind.Total),
		MostInto: into.Most, MostBack: behind.Most}, nil
}

// sums are what a routine's row says.
type sums struct {
	loops, into, back uint64
	most              int
}

func (o *Overlap) sums() (s sums) {
	for i := range o.Loops {
		if l := &o.Loops[i]; l.Overlaps != nil {
			s.loops = saturating.Add(s.loops, *l.Overlaps)
			s.most = max(s.most, *l.Most)
		}
	}
	for i := range o.Calls {
		c := &o.Calls[i]
		s.into = saturating.Add(s.into, c.Into)
		s.back = saturating.Add(s.back, c.Back)
		s.most = max(s.most, c.MostInto, c.MostBack)
	}
	return s
}

// WriteText writes a row for each figure and a line for each routine, those with most overlapping
// paths first.
func (r *Report) WriteText(w io.Writer) error {
	out := bufio.NewWriter(w)
	row := func(name string, format string, args ...any) {
		fmt.Fprintf(out, "%-15s "+format+"\n", append([]any{name}, args...)...)
	}
	var all sums
	paths, loops, calls := uint64(0), 0, 0
	list := make([]sums, len(r.Routines))
	order := make([]int, len(r.Routines))
	for i := range r.Routines {
		o := &r.Routines[i]
		list[i], order[i] = o.sums(), i
		all.loops = saturating.Add(all.loops, list[i].loops)
		all.into = saturating.Add(all.into, list[i].into)
		all.back = saturating.Add(all.back, list[i].back)
		paths = saturating.Add(paths, o.Paths)
		loops, calls = loops+len(o.Loops), calls+len(o.Calls)
	}
	row("program", "%s", names.Printable(r.Program))
	row("degree", "%d; the greatest useful one is %d", r.Degree, r.Most)
	row("acyclic paths", "%d in %s with loops or calls", paths, text.Count(len(r.Routines),
		"routine"))
	row("over loops", "%d over the back edges of %s", all.loops, text.Count(loops-r.LoopsLeftOut,
		"loop"))
	row("into calls", "%d at %s", all.into, text.Count(calls, "call"))
	row("back", "%d behind these", all.back)
	if r.LoopsLeftOut > 0 {
		row("left out", "%s: %s", text.Count(r.LoopsLeftOut, "loop"), overlap.Irreducible)
	}
	if r.CallsLeftOut > 0 {
		row("left out", "%s through a pointer, of external code, or of what is not traced",
			text.Count(r.CallsLeftOut, "call"))
	}
	slices.SortStableFunc(order, func(i, j int) int {
		total := func(s sums) uint64 {
			return saturating.Add(s.loops, saturating.Add(s.into, s.back))
		}
		return cmp.Compare(total(list[j]), total(list[i]))
	})
	if len(order) > 0 {
		fmt.Fprintf(out, "\n%12s %9s %14s %14s %14s %5s  ROUTINE\n", "ENTRY", "PATHS", "LOOPS",
			"CALLS", "RETURNS", "MOST")
	}
	const front = 12 + 9 + 3*14 + 5 + 8
	for _, i := range order {
		o, s := &r.Routines[i], list[i]
		fmt.Fprintf(out, "%12x %9d %14d %14d %14d %5d  %s\n", o.Entry, o.Paths, s.loops, s.into,
			s.back, s.most, names.Fit(o.Name, report.TableColumns-front))
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write plan: %w", err)
	}
	return nil
}

// WriteJSON writes one JSON object.
func (r *Report) WriteJSON(w io.Writer) error {
	return report.WriteJSON(w, r, "the plan of overlapping paths")
}
