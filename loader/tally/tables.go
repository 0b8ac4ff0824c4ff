package tally

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"wpptrace/bpf"
	"wpptrace/loader/arch"
	"wpptrace/loader/cfg"
	"wpptrace/loader/counting"
	"wpptrace/loader/image"
	"wpptrace/loader/plan/planner"
)

// A Routine is one of which paths are counted.
type Routine struct {
	*cfg.Routine
	Machine *counting.Machine
}

// Tables are what the kernel has of routines: the cookies of their sites, and the steps.
type Tables struct {
	Sites []Site
	Keys  uint64   // counters
	First []uint64 // by routine: the first of its counters

	steps  []bpf.CountCountStep
	unsure uint32
	rest   []*counting.Formula // by routine
	size   []uint64            // by routine: how many counters it has
	open   map[uint32]int      // the routines of rows that are open
}

// A Site is an instruction that carries a probe.
type Site struct {
	Addr   uint64 // link-time
	cookie uint64
}

const (
	defaults = uint32(bpf.CountCountRowROW_DEFAULT)
	noRow    = uint32(bpf.CountCountRowROW_NONE)
	lastRow  = noRow - 1 // that of states that have no step
	noKey    = math.MaxUint64
)

// Pack makes the tables of routines of one image. Sites are in the order of their addresses. Cost:
// nearly linear in the steps.
func Pack(routines []Routine) (*Tables, error) {
	t := &Tables{open: map[uint32]int{}}
	symbols := uint32(0)
	for _, r := range routines {
		symbols += 2 * uint32(len(r.Machine.Sites))
	}
	t.unsure = symbols
	t.grow(int(2 * symbols))
	x := packer{t, map[uint32]bool{defaults: true, noRow: true, lastRow: true,
		t.unsure: true}, int(2 * symbols)}
	at := uint32(0)
	for _, r := range routines {
		t.First, t.rest = append(t.First, t.Keys), append(t.rest, r.Machine.Rest)
		t.size = append(t.size, uint64(r.Machine.Keys))
		if err := x.routine(&r, at); err != nil {
			return nil, fmt.Errorf("count paths of %s: %w", r.Name, err)
		}
		t.Keys += uint64(r.Machine.Keys)
		at += 2 * uint32(len(r.Machine.Sites))
	}
	slices.SortFunc(t.Sites, func(a, b Site) int { return cmp.Compare(a.Addr, b.Addr) })
	return t, nil
}

func (t *Tables) grow(n int) {
	for len(t.steps) < n {
		t.steps = append(t.steps, bpf.CountCountStep{From: noRow})
	}
}

type packer struct {
	*Tables
	taken map[uint32]bool // rows
	free  int             // before it hardly any place is
}

// routine packs a routine, whose symbols begin at first.
func (x *packer) routine(r *Routine, first uint32) error {
	m := r.Machine
	number := func(s counting.Symbol) uint32 {
		i, _ := slices.BinarySearch(m.Sites, s.Block())
		return first + 2*uint32(i) + uint32(s.Outcome())
	}
	rows := make([]uint32, len(m.Rows))
	for i := range m.Rows {
		rows[i] = x.place(m.Rows[i].Steps, number)
		if m.Rows[i].Open {
			x.open[rows[i]] = len(x.First) - 1
		}
	}
	put := func(from uint32, s counting.Step) {
		key := uint64(noKey)
		if s.Key != counting.None {
			key = x.Keys + uint64(s.Key)
		}
		x.steps[from+number(s.Hit)] = bpf.CountCountStep{From: from, To: rows[s.Row], Key: key}
	}
	follows, begins := map[int]bool{}, map[int]bool{}
	for i := range m.Rows {
		for _, s := range m.Rows[i].Steps {
			put(rows[i], s)
			follows[s.Hit.Block()] = true
		}
	}
	for _, s := range m.Defaults {
		put(defaults, s)
		begins[s.Hit.Block()] = true
	}
	for _, s := range m.Unsure {
		put(x.unsure, s)
	}
	for i, b := range m.Sites {
		site, err := siteOf(r, b)
		if err != nil {
			return err
		}
		site.cookie |= uint64(first + 2*uint32(i))
		if follows[b] {
			site.cookie |= 1 << bpf.CountCountCookieCOUNT_FOLLOWS
		}
		if begins[b] {
			site.cookie |= 1 << bpf.CountCountCookieCOUNT_FIRST
		}
		x.Sites = append(x.Sites, site)
	}
	return nil
}

// place finds a row for steps such that no other row has a step at the same place, and reserves
// these.
func (x *packer) place(steps []counting.Step, number func(counting.Symbol) uint32) uint32 {
	const tries = 256
	if len(steps) == 0 {
		return lastRow
	}
	least := number(steps[0].Hit)
	for x.free < len(x.steps) && x.steps[x.free].From != noRow {
		x.free++
	}
	for at := x.free; ; at++ {
		if at == x.free+tries {
			at = max(at, len(x.steps))
		}
		row := uint32(at) - least
		if x.taken[row] {
			continue
		}
		fits := !slices.ContainsFunc(steps, func(s counting.Step) bool {
			to := int(row + number(s.Hit))
			return to < len(x.steps) && x.steps[to].From != noRow
		})
		if !fits {
			continue
		}
		x.taken[row] = true
		x.grow(int(row+number(steps[len(steps)-1].Hit)) + 1)
		for _, s := range steps {
			x.steps[row+number(s.Hit)].From = row
		}
		return row
	}
}

// siteOf is the site of a block, with what its cookie has of the instruction.
func siteOf(r *Routine, b int) (Site, error) {
	i, _, ok := planner.Point(r.Routine, b)
	if !ok {
		return Site{}, fmt.Errorf("block %d can have no probe", b)
	}
	insn := &r.Blocks[b].Insns[i]
	rule := r.CFA(insn.Addr)
	s := Site{Addr: insn.Addr}
	const most = 1 << (bpf.CountCountCookieCOUNT_OFFSET_BITS - 1)
	if rule.Off >= most || rule.Off < -most {
		return Site{}, fmt.Errorf("its frame at %x is too large", insn.Addr)
	}
	s.cookie = uint64(rule.Off) & (2*most - 1) << bpf.CountCountCookieCOUNT_OFFSET_SHIFT
	base, isRegister := arch.Native.FrameRegister(rule.Reg)
	if !isRegister || base == arch.Native.FramePointer() {
		s.cookie |= 1 << bpf.CountCountCookieCOUNT_BY_FP
	}
	if rule.Reg == image.Slot {
		s.cookie |= 1 << bpf.CountCountCookieCOUNT_IN_SLOT
	}
	if r.Machine.IsConditional(b) {
		s.cookie |= 1<<bpf.CountCountCookieCOUNT_CONDITIONAL |
			uint64(insn.Condition())<<bpf.CountCountCookieCOUNT_CONDITION_SHIFT
	}
	return s, nil
}
