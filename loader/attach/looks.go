package attach

import (
	"fmt"

	"github.com/cilium/ebpf"

	"wpptrace/bpf"
	"wpptrace/internal/remedy"
	"wpptrace/loader/loads"
	"wpptrace/loader/plan"
	"wpptrace/loader/sharing"
)

// Where libraries are traced too, the kernel's tables have room for so many steps of load programs
// and numbers of their cases: 9 MB. The C library has 200,000 steps.
const (
	roomForSteps = 1 << 19
	roomForCases = 1 << 16
)

// size gives the kernel's tables of what is read at hits their sizes, beside those of sites and
// calls, and has hits take states.
func (l *looks) size(spec *ebpf.CollectionSpec, sites, calls int, shared bool) error {
	if l.plan == nil {
		return nil
	}
	if err := l.check(); err != nil {
		return err
	}
	l.extra = min(sites, loads.FirstExtra)
	steps, cases := len(l.plan.Steps), len(l.plan.Cases)
	if shared {
		steps, cases = max(steps, roomForSteps), max(cases, roomForCases)
	}
	for name, n := range map[string]int{"looks": l.extra + len(l.plan.Extra), "load_steps": steps,
		"load_cases": cases, "after": calls,
		"state_slots": int(spec.Maps["slots"].MaxEntries)} {
		spec.Maps[name].MaxEntries = uint32(max(n, 1))
	}
	for name, n := range map[string]int{"values": 1, "extra_looks": l.extra} {
		if err := spec.Variables[name].Set(uint32(n)); err != nil {
			return fmt.Errorf("set %s of the BPF program: %w", name, err)
		}
	}
	return nil
}

// check fails where the plan has more than cookies can name.
func (l *looks) check() error {
	if n := len(l.plan.Base.Sites); n > loads.FirstExtra {
		return remedy.Errorf(remedy.FewerProbes, "take values at %d probes: %d is the most", n,
			loads.FirstExtra)
	}
	return nil
}

// looks are what is read at hits, as the BPF program has it.
type looks struct {
	plan    *loads.Plan // nil: values are not taken
	extra   int         // the index of the first look of a probe for values alone
	steps   int         // that the kernel has
	cases   int         // the same
	objects *bpf.TracerObjects
}

// Sequences returns where threads that were hit had areas of restartable sequences, if values are
// taken; false: these are not all. Cost: some 100 ns.
func (s *Session) Sequences() (areas []sharing.Area, isWhole bool) {
	var n uint32
	var all [bpf.TracerSequenceTableSEQUENCES_MAX]bpf.TracerArea
	if s.objects.SequenceCount.Get(&n) != nil || n >= uint32(len(all)) ||
		n > 0 && s.objects.Sequences.Get(&all) != nil {
		return nil, false
	}
	for _, a := range all[:n] {
		areas = append(areas, sharing.Area{Addr: a.Address, Size: a.Size})
	}
	return areas, true
}

// extra are where the probes for values alone go, which are in the executable.
func (o Options) extra() (sites []plan.Site) {
	if o.Loads == nil {
		return nil
	}
	for _, s := range o.Loads.Extra {
		sites = append(sites, plan.Site{Addr: s.Addr, Routine: s.Routine, Stepped: s.Stepped})
	}
	return sites
}

// write writes what is read in a part of the plan: at its sites, from first on, and at probes for
// values alone, if it is the first part.
func (l *looks) write(first int, sites []plan.Site, library int) error {
	if l.plan == nil {
		return nil
	}
	if err := l.check(); err != nil {
		return err
	}
	var entries []uint32
	var list []bpf.TracerLook
	for i := range sites {
		entries = append(entries, uint32(first+i))
		list = append(list, KernelLook(&l.plan.Looks[first+i], sites[i].Condition, library))
	}
	if library == 0 {
		extra := l.plan.Looks[len(sites):]
		for i := range l.plan.Extra {
			entries = append(entries, uint32(l.extra+i))
			list = append(list, KernelLook(&extra[i], l.plan.Extra[i].Condition, 0))
		}
	}
	if err := write(l.objects.Looks, entries, list); err != nil {
		return fmt.Errorf("write what is read at %d sites: %w", len(list), err)
	}
	return l.writePrograms()
}

// writePrograms writes the steps and cases that the kernel does not have yet.
func (l *looks) writePrograms() error {
	steps := KernelSteps(l.plan.Steps[l.steps:])
	if err := write(l.objects.LoadSteps, indices(l.steps, len(steps)), steps); err != nil {
		return fmt.Errorf("write %d steps of load programs: %w", len(steps), err)
	}
	l.steps += len(steps)
	cases := l.plan.Cases[l.cases:]
	if err := write(l.objects.LoadCases, indices(l.cases, len(cases)), cases); err != nil {
		return fmt.Errorf("write %d cases of load programs: %w", len(cases), err)
	}
	l.cases += len(cases)
	return nil
}

// writeAfter writes where load programs go on behind calls, by entries of their table.
func (l *looks) writeAfter(entries []uint32, calls []bpf.TracerCall) error {
	if l.plan == nil {
		return nil
	}
	after := make([]uint32, len(calls))
	for i := range calls {
		after[i] = l.plan.After[calls[i].Address]
	}
	if err := write(l.objects.After, entries, after); err != nil {
		return fmt.Errorf("write where load programs go on behind %d calls: %w", len(calls), err)
	}
	return nil
}

func indices(first, n int) []uint32 {
	list := make([]uint32, n)
	for i := range list {
		list[i] = uint32(first + i)
	}
	return list
}

// KernelLook is what is read at a hit of a probe as the BPF program has it: by the condition of the
// probed jump and by library, the number of the probe's image, 0 for the executable.
func KernelLook(l *loads.Look, condition uint8, library int) bpf.TracerLook {
	k := bpf.TracerLook{First: l.First, Behind: l.Behind, Condition: condition,
		Library: uint8(library)}
	for outcome, flag := range []bpf.TracerLookFlag{bpf.TracerLookFlagLOOK_LEAVES,
		bpf.TracerLookFlagLOOK_LEAVES_TAKEN} {
		if l.Leaves[outcome] {
			k.Flags |= uint8(flag)
		}
	}
	return k
}

// KernelSteps are steps of load programs as the BPF program has them.
func KernelSteps(list []loads.Step) []bpf.TracerLoadStep {
	steps := make([]bpf.TracerLoadStep, 0, len(list))
	for _, s := range list {
		steps = append(steps, bpf.TracerLoadStep{Op: uint8(s.Op), Dst: s.Dst, A: s.A, B: s.B,
			Scale: s.Scale, Size: s.Size, Sign: s.Sign, Condition: s.Condition, Imm: s.Imm,
			Jump: s.Jump})
	}
	return steps
}
