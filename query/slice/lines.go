package slice

import (
	"cmp"
	"slices"

	"wpptrace/compress/wpp"
	"wpptrace/query/values"
)

// A Line is the instructions of a slice that are of one source line, and of the same inlined calls.
type Line struct {
	// Span is where they are: its instructions mean nothing. Its Line is 0 where none is known: it
	// is then all of the routine for which none is.
	Span    wpp.Span
	Routine int
	Away    int   // as of the nearest of Parts
	Times   int   // executions of its instructions that are in the slice
	Parts   []int // indices in Answer.Parts, in their order there
}

// Lines returns a slice by source line, the nearest to what was asked for first: that which the
// fewest dependences between lines lead to.
func (a *Answer) Lines(s *wpp.Snapshot) []Line {
	at := map[lineKey]int{}
	var lines []Line
	for i := range a.Parts {
		p := &a.Parts[i]
		span := values.SpanOf(&s.Routines[p.Routine].Blocks[p.Block], p.Insn)
		key := keyOf(p.Place, span)
		n, ok := at[key]
		if !ok {
			n = len(lines)
			at[key] = n
			lines = append(lines, Line{Span: span, Routine: p.Routine, Away: p.Away})
		}
		l := &lines[n]
		l.Away = min(l.Away, p.Away)
		l.Times += p.Times
		l.Parts = append(l.Parts, i)
	}
	slices.SortStableFunc(lines, func(a, b Line) int { return cmp.Compare(a.Away, b.Away) })
	return lines
}

// A lineKey is a source line in a routine or a call that is inlined there.
type lineKey struct{ routine, call, file, line int }

func keyOf(p Place, span wpp.Span) lineKey {
	if span.Line == 0 {
		return lineKey{routine: p.Routine}
	}
	return lineKey{p.Routine, span.Call, span.File, span.Line}
}

// away returns of each instance of a slice how many of the dependences that lead to it at least are
// between source lines; of is what was asked for. in is the slice, from the last of these on, or
// forward from the first: as each instance depends on earlier ones alone, one pass is enough.
func (g *Graph) away(s *wpp.Snapshot, of, in []int, by Kinds, forward bool) []uint32 {
	ids := map[lineKey]uint32{}
	lines := make([]uint32, len(g.places))
	for i, p := range g.places {
		key := keyOf(p, values.SpanOf(&s.Routines[p.Routine].Blocks[p.Block], p.Insn))
		if _, ok := ids[key]; !ok {
			ids[key] = uint32(len(ids))
		}
		lines[i] = ids[key]
	}
	const unreached = 1<<32 - 1
	lo := min(in[0], in[len(in)-1])
	least := make([]uint32, max(in[0], in[len(in)-1])-lo+1)
	for i := range least {
		least[i] = unreached
	}
	for _, i := range of {
		least[i-lo] = 0
	}
	list := make([]uint32, len(in))
	for n, i := range in {
		for _, e := range g.of(i) {
			on := e.instance()
			if on < lo || by&e.kind() == 0 {
				continue
			}
			from, to := &least[i-lo], &least[on-lo]
			if forward {
				from, to = to, from
			}
			if *from == unreached {
				continue
			}
			between := uint32(0)
			if lines[g.insns.at(i)] != lines[g.insns.at(on)] {
				between = 1
			}
			*to = min(*to, *from+between)
		}
		list[n] = least[i-lo]
	}
	return list
}
