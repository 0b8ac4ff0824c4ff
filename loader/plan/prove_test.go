package plan_test

import (
	"fmt"
	"slices"
	"testing"

	"wpptrace/loader/cfg"
	"wpptrace/loader/image"
	"wpptrace/loader/plan"
	"wpptrace/loader/x86"
)

// prove checks the rules of silence (design, section 3) on all observed routines, from their definitions and with nothing of the package's own searches.
func prove(t *testing.T, p *plan.Plan) {
	t.Helper()
	faults := 0
	for _, r := range p.Routines {
		if !r.Observed() {
			continue
		}
		for _, check := range []func(*plan.Plan, *plan.Routine) error{
			proveSites, proveEntries, proveOneWay, proveSpoken, proveFrames, proveWitnesses, proveOpenCalls,
		} {
			if err := check(p, r); err != nil && faults < 10 {
				faults++
				t.Errorf("%s: %s at %x: %v", p.Program.Image.Name, r.Name, r.Addr, err)
			}
		}
	}
	if err := proveNoCircle(p); err != nil {
		t.Errorf("%s: %v", p.Program.Image.Name, err)
	}
}

const exit = -1

// after are the nodes that may follow a block.
func after(r *plan.Routine, b int) []int {
	block := &r.Blocks[b]
	switch block.End {
	case cfg.Ret, cfg.Tail, cfg.TailInd:
		return []int{exit}
	case cfg.NoReturn, cfg.Trap:
		return nil
	}
	return block.Succ
}

// A way is a sequence of nodes that runs without a word; a step of it may be the end of an activation and the beginning of the next.
// ways lists those from a node to the next word, or to the end of a silent activation, by where they end. told is the way of the switch at table.
func ways(r *plan.Routine, from, table, told int) (map[int][][]int, error) {
	const most = 10_000
	found := map[int][][]int{}
	count := 0
	var walk func(n int, way []int) error
	walk = func(n int, way []int) error {
		if count++; count > most {
			return fmt.Errorf("more than %d silent ways from block %d", most, from)
		}
		if slices.Contains(way, n) {
			return fmt.Errorf("silent circle %v back to %d", way, n)
		}
		way = append(slices.Clone(way), n)
		var next []int
		switch {
		case n == exit && r.Silent, n != exit && r.Site(n) != nil:
			found[n] = append(found[n], way)
			return nil
		case n == exit:
			found[n] = append(found[n], way)
			next = entries(r)
		case n == table:
			next = []int{told}
		default:
			next = after(r, n)
		}
		for _, m := range slices.Compact(slices.Sorted(slices.Values(next))) {
			if err := walk(m, way); err != nil {
				return err
			}
		}
		return nil
	}
	return found, walk(from, nil)
}

// proveOneWay: between a word and the next there is one way at most.
func proveOneWay(p *plan.Plan, r *plan.Routine) error {
	type start struct{ node, table, told int }
	var groups [][]start // of a group nothing tells the starts apart
	for _, b := range entries(r) {
		groups = append(groups, []start{{b, exit, 0}})
	}
	for b := range r.Blocks {
		s := r.Site(b)
		if s == nil {
			continue
		}
		next := slices.Clone(after(r, b))
		switch {
		case s.Case != nil && s.Case.Target:
			for _, to := range next {
				groups = append(groups, []start{{to, exit, 0}})
			}
		case s.Condition < plan.NoCondition:
			for out, to := range []int{next[1], next[0]} {
				if s.Case == nil || s.Case.Taken != (out == 1) {
					groups = append(groups, []start{{to, exit, 0}})
					continue
				}
				for _, target := range r.Blocks[s.Case.Table].Table.Targets {
					groups = append(groups, []start{{to, s.Case.Table, target}})
				}
			}
		default:
			var group []start
			for _, to := range slices.Compact(slices.Sorted(slices.Values(next))) {
				group = append(group, start{to, exit, 0})
			}
			groups = append(groups, group)
		}
	}
	for _, group := range groups {
		ends := map[int][][]int{}
		for _, s := range group {
			found, err := ways(r, s.node, s.table, s.told)
			if err != nil {
				return err
			}
			for end, list := range found {
				ends[end] = append(ends[end], list...)
			}
		}
		for end, list := range ends {
			if len(list) > 1 {
				return fmt.Errorf("two silent ways to %d: %v and %v", end, list[0], list[1])
			}
		}
	}
	return nil
}

// entries are the blocks by which a routine is entered.
func entries(r *plan.Routine) []int { return append([]int{r.Entry}, r.Others...) }

// silently are the blocks that can be reached without a word from some nodes, those included, within one activation.
func silently(r *plan.Routine, from ...int) map[int]bool {
	seen := map[int]bool{}
	for _, n := range from {
		seen[n] = true
	}
	for queue := from; len(queue) > 0; queue = queue[1:] {
		n := queue[0]
		if n == exit || r.Site(n) != nil {
			continue
		}
		for _, m := range after(r, n) {
			if !seen[m] {
				seen[m] = true
				queue = append(queue, m)
			}
		}
	}
	return seen
}

func calls(b *cfg.Block) bool {
	k := b.Insns[len(b.Insns)-1].Kind
	return k == x86.Call || k == x86.CallInd
}

// proveSites: each probe sits on an instruction of the allow-lists whose CFA is rsp or rbp and an offset, or what lies there, and says what it must.
func proveSites(p *plan.Plan, r *plan.Routine) error {
	for b := range r.Blocks {
		s := r.Site(b)
		if s == nil {
			continue
		}
		q := r.Blocks[b].Insns[s.Insn]
		code := p.Program.Image.Bytes(q.Addr, q.Addr+uint64(q.Len))
		switch class, rule := q.Class(code), r.CFA(q.Addr); {
		case q.Addr != s.Addr || s.Routine != r.ID || s.Block != b:
			return fmt.Errorf("the site of block %d is at %x in block %d of %d", b, s.Addr, s.Block, s.Routine)
		case class == x86.Never || s.Stepped != (class == x86.Stepped):
			return fmt.Errorf("probe at %x: class %d, stepped %v", s.Addr, class, s.Stepped)
		case rule.Off != s.Offset || s.Base != map[int8]uint8{6: 5, 7: 4, image.Slot: 5}[rule.Reg] || s.Slot != (rule.Reg == image.Slot):
			return fmt.Errorf("probe at %x: CFA %+v became %d%+d, slot %v", s.Addr, rule, s.Base, s.Offset, s.Slot)
		case (q.Kind == x86.Jcc) != (s.Condition < plan.NoCondition):
			return fmt.Errorf("probe at %x: condition %d", s.Addr, s.Condition)
		case s.First != silently(r, entries(r)...)[b]:
			return fmt.Errorf("probe at %x: first %v", s.Addr, s.First)
		}
	}
	return nil
}

// proveEntries: rule 1, who may be silent.
func proveEntries(p *plan.Plan, r *plan.Routine) error {
	if r.Silent && (p.Program.AddressTaken(r.Addr) || r.Symbol == "main") {
		return fmt.Errorf("it may be silent, but not only observed code enters it")
	}
	for b := range r.Blocks {
		if callee, _ := p.Program.Callee(r.Routine, b); callee != nil {
			if kind, t := r.Callee(b); kind == plan.Known && t.ID != callee.ID {
				return fmt.Errorf("the call at %x is of %s, not %s", r.Blocks[b].Hi, callee.Name, t.Name)
			}
		}
	}
	return nil
}

// proveSpoken: rule 2, a chain of callers ends only where the caller has made a word for certain.
func proveSpoken(p *plan.Plan, r *plan.Routine) error {
	reach := silently(r, entries(r)...)
	for b := range r.Blocks {
		block := &r.Blocks[b]
		c, ok := p.Calls[block.Hi]
		if !calls(block) || !ok {
			continue
		}
		if c.Depth != block.Depth {
			return fmt.Errorf("the frame at the call before %x is %d bytes, not %d", block.Hi, block.Depth, c.Depth)
		}
		if silent := reach[b] && r.Site(b) == nil; c.Spoken == silent {
			return fmt.Errorf("the call before %x: spoken %v", block.Hi, c.Spoken)
		}
	}
	return nil
}

// proveFrames: rule 4, no call of an observed routine with a frame of unknown size before the first word.
func proveFrames(_ *plan.Plan, r *plan.Routine) error {
	reach := silently(r, entries(r)...)
	for b := range r.Blocks {
		block := &r.Blocks[b]
		if kind, _ := r.Callee(b); calls(block) && block.Depth < 0 && kind == plan.Known && reach[b] && r.Site(b) == nil {
			return fmt.Errorf("the call before %x may come before a word, from a frame of unknown size", block.Hi)
		}
	}
	return nil
}

// proveWitnesses: rule 5 and those of the plain plan.
func proveWitnesses(_ *plan.Plan, r *plan.Routine) error {
	speaks := map[int]string{}
	for _, b := range r.Pads {
		speaks[b] = "a landing pad"
	}
	for b := range r.Blocks {
		kind, _ := r.Callee(b)
		if kind == plan.External {
			speaks[b] = "a call of code that is not observed"
		}
		if r.ReturnsTwice(b) {
			speaks[b], speaks[r.Blocks[b].Succ[0]] = "a call that returns twice", "what follows a call that returns twice"
		}
	}
	for b, what := range speaks {
		if r.Site(b) == nil {
			return fmt.Errorf("block %d is %s and has no probe", b, what)
		}
	}
	return nil
}

// proveOpenCalls: rule 6, after a call of code that is not observed a word comes before the next such call that is not itself a
// witness, and before the end of an activation that anybody may have called.
func proveOpenCalls(p *plan.Plan, r *plan.Routine) error {
	open := func(b int) bool {
		kind, _ := r.Callee(b)
		return calls(&r.Blocks[b]) && (kind == plan.External || kind == plan.Unknown)
	}
	for b := range r.Blocks {
		if end := r.Blocks[b].End; !open(b) || end != cfg.Call && end != cfg.CallInd {
			continue
		}
		for n := range silently(r, r.Blocks[b].Succ[0]) {
			switch {
			case n == exit && p.Program.AddressTaken(r.Addr):
				return fmt.Errorf("no word after the call before %x", r.Blocks[b].Hi)
			case n != exit && r.Site(n) == nil && open(n):
				return fmt.Errorf("no word between the calls before %x and %x", r.Blocks[b].Hi, r.Blocks[n].Hi)
			}
		}
	}
	for n := range silently(r, entries(r)...) {
		if n != exit && r.Site(n) == nil && open(n) {
			return fmt.Errorf("no word before the call before %x", r.Blocks[n].Hi)
		}
	}
	return nil
}

// proveNoCircle: rule 3, no circle of calls and tail jumps without a word.
func proveNoCircle(p *plan.Plan) error {
	next := make([][]int, len(p.Routines))
	degree := make([]int, len(p.Routines))
	for i, r := range p.Routines {
		if !r.Observed() {
			continue
		}
		for b := range silently(r, entries(r)...) {
			if b == exit || r.Site(b) != nil {
				continue
			}
			if kind, t := r.Callee(b); kind == plan.Known {
				next[i] = append(next[i], t.ID)
				degree[t.ID]++
			}
		}
	}
	var free []int
	for i := range next {
		if degree[i] == 0 {
			free = append(free, i)
		}
	}
	for done := 0; done < len(free); done++ {
		for _, t := range next[free[done]] {
			if degree[t]--; degree[t] == 0 {
				free = append(free, t)
			}
		}
	}
	for i, n := range degree {
		if n > 0 {
			return fmt.Errorf("%s at %x can be entered again and again without a word", p.Routines[i].Name, p.Routines[i].Addr)
		}
	}
	return nil
}

func TestPlansOfTheSystemAreProven(t *testing.T) {
	for _, path := range system(t) {
		p := recovered(t, path)
		for _, complete := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s complete %v", p.Image.Name, complete), func(t *testing.T) {
				prove(t, planned(t, p, plan.Options{Complete: complete}))
			})
		}
	}
}
