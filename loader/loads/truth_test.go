package loads_test

import (
	"fmt"
	"path/filepath"
	"sort"
	"testing"

	"wpptrace/kernel-tests/truth"
	"wpptrace/kernel-tests/truth/states"
	"wpptrace/loader/cfg"
	"wpptrace/loader/loads"
	"wpptrace/loader/plan"
	"wpptrace/loader/x86"
)

// A history is what a run's memory held when, as far as its accesses show.
type history struct {
	bytes map[uint64][]moment // in the order of time
	bias  uint64
	after map[uint64]uint32
	now   int
}

// A moment is an access to a byte.
type moment struct {
	step   int
	value  byte
	stores bool
}

func historyOf(s *states.Sample, p *loads.Plan) *history {
	h := &history{bytes: map[uint64][]moment{}, bias: s.Trace.Bias, after: p.After}
	note := func(step int, list []truth.MemoryValue, stores bool) {
		for _, m := range list {
			for i, b := range m.Bytes {
				at := m.Addr + uint64(i)
				h.bytes[at] = append(h.bytes[at], moment{step, b, stores})
			}
		}
	}
	for i, step := range s.Trace.Threads[0].Values {
		note(i, step.Reads, false)
		note(i, step.Writes, true)
	}
	return h
}

// Read knows a byte that is loaded later before anything is stored there, or was accessed before;
// what was never accessed it takes for 0.
func (h *history) Read(addr uint64, to []byte) bool {
	some := false
	for i := range to {
		list := h.bytes[addr+uint64(i)]
		n := sort.Search(len(list), func(i int) bool { return list[i].step >= h.now })
		switch {
		case n < len(list) && !list[n].stores:
			to[i] = list[n].value
		case n > 0:
			to[i] = list[n-1].value
		}
		some = some || len(list) > 0
	}
	return some
}

func (h *history) Continuation(returnAddress uint64) (step uint32, ok bool) {
	step, ok = h.after[returnAddress-h.bias]
	return step, ok
}

func (h *history) Bias(int) uint64 { return h.bias }

// What becomes of the loads of a run.
const (
	read = iota
	stored
	private
	readOnly
	unread
	causes
)

// TestEveryLoadAhead goes along runs that were single-stepped: what is loaded between two hits was
// read at the first, was stored in between, is private, or is of read-only data; and what was read
// is what is loaded.
func TestEveryLoadAhead(t *testing.T) {
	// loads behind what is not followed: a return by a stack pointer that is computed, loops by rcx
	unknown := map[string]int{"alloca": 19, "rep": 26, "threaded_code": 2}
	for _, name := range states.Names() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := states.Load(name)
			if err != nil {
				t.Fatal(err)
			}
			path, err := s.Install(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			p, err := loads.Make(planned(t, path), loads.Options{})
			if err != nil {
				t.Fatal(err)
			}
			r := newRun(s, p)
			if r.check(t, filepath.Base(path)); r.loads[unread] > unknown[name] {
				t.Errorf("%d loads are not read: %v", r.loads[unread], r.places)
			}
		})
	}
}

// A run is one that is gone along.
type run struct {
	sample *states.Sample
	plan   *loads.Plan
	sites  map[uint64]int // by address
	hits   int
	last   uint64 // address of the last one
	reads  int
	words  int
	loads  [causes]int
	left   int            // hits behind which external code may run
	places map[string]int // of unread loads
}

func newRun(s *states.Sample, p *loads.Plan) *run {
	r := &run{sample: s, plan: p, sites: map[uint64]int{}, places: map[string]int{}}
	for i := range p.Base.Sites {
		r.sites[p.Base.Sites[i].Addr] = i
	}
	return r
}

func (r *run) check(t *testing.T, name string) {
	var registers truth.Replay
	h := historyOf(r.sample, r.plan)
	steps := r.sample.Trace.Threads[0].Values
	seen := map[uint64]byte{} // what is read of the current hit, or stored since
	isRead, own := map[uint64]bool{}, map[uint64]bool{}
	hit, mayLeave := false, false
	for i := range steps {
		step := &steps[i]
		registers.Before(step)
		site, isSite := r.sites[step.PC]
		if len(step.Before) > 0 && i > 0 && !isSite {
			if hit && !mayLeave {
				t.Errorf("%s: external code ran before %#x, which the last hit did not say", name,
					step.PC)
			}
			hit = false // up to the next hit
		}
		if isSite {
			clear(seen)
			clear(isRead)
			clear(own)
			h.now, hit, r.last = i, true, step.PC
			outcome := 0
			if s := &r.plan.Base.Sites[site]; s.Condition != plan.NoCondition &&
				i+1 < len(steps) && steps[i+1].PC == r.target(s) {
				outcome = 1
			}
			r.hits++
			all := (*[17]uint64)(registers.Registers[:17])
			mayLeave = r.plan.Run(site, outcome, mayLeave, all, 0, h,
				func(x *loads.Read) {
					r.reads++
					r.words += (x.Size + 7) / 8
					for k, b := range x.Bytes[:x.Size] {
						seen[x.Addr+uint64(k)], isRead[x.Addr+uint64(k)] = b, !x.Failed
					}
				})
			if mayLeave {
				r.left++
			}
		}
		if hit {
			r.load(t, step, seen, isRead, own)
		}
		registers.After(step)
	}
	total := 0
	for _, n := range r.loads {
		total += n
	}
	t.Logf("%s: %d hits, %.2f reads, %.2f words a hit, %d left; %d loads: read %d, stored %d, "+
		"private %d, read-only %d, unread %d %v", name, r.hits,
		float64(r.reads)/float64(r.hits), float64(r.words)/float64(r.hits), r.left, total,
		r.loads[read], r.loads[stored], r.loads[private], r.loads[readOnly], r.loads[unread],
		r.places)
}

func (r *run) target(s *plan.Site) uint64 {
	b := &r.plan.Base.Routines[s.Routine].Blocks[s.Block]
	return b.Insns[len(b.Insns)-1].Target()
}

// load looks at what one step loads, and stores.
func (r *run) load(
	t *testing.T, step *truth.Step, seen map[uint64]byte, isRead, own map[uint64]bool,
) {
	for _, m := range step.Reads {
		cause := r.cause(step, m, seen, isRead, own)
		if c := r.plan.Base.Containing(step.PC); c == nil || !c.Traced() {
			continue
		}
		if cause == unread {
			r.places[r.place(step.PC)+" after "+r.place(r.last)]++
		}
		r.loads[cause]++
		for i, b := range m.Bytes {
			if was, ok := seen[m.Addr+uint64(i)]; ok && isRead[m.Addr+uint64(i)] && was != b {
				t.Errorf("%#x: the byte at %#x is %#x, %#x was read", step.PC, m.Addr+uint64(i), b,
					was)
			}
		}
	}
	for _, m := range step.Writes {
		for i, b := range m.Bytes {
			seen[m.Addr+uint64(i)], isRead[m.Addr+uint64(i)] = b, true
			own[m.Addr+uint64(i)] = true
		}
	}
}

func (r *run) cause(step *truth.Step, m truth.MemoryValue, seen map[uint64]byte,
	isRead, own map[uint64]bool) int {
	all := true
	for i := range m.Bytes {
		all = all && isRead[m.Addr+uint64(i)]
	}
	switch {
	case all && own[m.Addr]:
		return stored
	case all:
		return read
	}
	p := r.plan.Base
	if s := p.Program.Image.SectionAt(m.Addr - r.sample.Trace.Bias); s != nil && !s.Writable {
		return readOnly
	}
	c, q := r.insn(step.PC)
	if q == nil {
		return unread
	}
	e := q.Effects(c.Code(q), q.End())
	o := e.Address()
	switch {
	case e.Operation == x86.Pop || e.Operation == x86.Return || e.Operation == x86.Leave:
		return private
	case o.Mem && cfg.HidesFrame(c.Blocks, c.CFA, c.Code) && c.HasPlace(o, q.Addr) &&
		(o.Base == x86.RSP || o.Base == x86.RBP):
		return private
	}
	return unread
}

func (r *run) insn(pc uint64) (*cfg.Routine, *cfg.Insn) {
	c := r.plan.Base.Program.Containing(pc)
	if c == nil {
		return nil, nil
	}
	for b := range c.Blocks {
		for i := range c.Blocks[b].Insns {
			if q := &c.Blocks[b].Insns[i]; q.Addr == pc {
				return c, q
			}
		}
	}
	return c, nil
}

func (r *run) place(pc uint64) string {
	c, q := r.insn(pc)
	if q == nil {
		return fmt.Sprintf("%#x", pc)
	}
	e := q.Effects(c.Code(q), q.End())
	return fmt.Sprintf("%s+%#x(op %d)", c.Name, pc-c.Addr, e.Operation)
}
