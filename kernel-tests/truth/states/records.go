//go:build linux && cgo

package states

import (
	"fmt"
	"slices"

	"wpptrace/bpf"
	"wpptrace/bpf/usermode"
	"wpptrace/kernel-tests/truth"
	"wpptrace/loader/attach"
	"wpptrace/loader/loads"
)

// thread is what the records say of the one thread: its id, and when it began.
const (
	thread  = 1
	started = 2
)

// Records are those that the kernel would have sent of the run under a plan: of events, which the C
// of a hit makes, and of states, which the load programs make, each before the events of its hits.
// A plan without Looks has no states. Of memory, pages are there that the run accesses.
func (s *Sample) Records(p *loads.Plan) ([][]byte, error) {
	if len(s.Trace.Threads) != 1 {
		return nil, fmt.Errorf("records of %s: %d threads", s.Name, len(s.Trace.Threads))
	}
	r := newRun(s, p)
	defer r.thread.Free()
	steps := s.Trace.Threads[0].Values
	r.mapPages(steps)
	for i := range steps {
		if i == 0 || len(steps[i].Before) > 0 {
			r.foresee(steps[i:])
		}
		r.replay.Before(&steps[i])
		if site, ok := r.sites[steps[i].PC]; ok {
			r.hit(site)
		}
		for _, m := range steps[i].Writes {
			r.store(m)
		}
		r.replay.After(&steps[i])
	}
	r.machine.Exit(r.thread, outside, r.registers(), 0)
	return r.machine.Records, nil
}

// outside is an address of external code.
const outside = 0x7f1200000000

// A run is a simulated process that does what a truth says.
type run struct {
	machine *usermode.Machine
	thread  *usermode.Thread
	replay  truth.Replay
	sites   map[uint64]int // cookies of probes, by link-time address
}

func newRun(s *Sample, p *loads.Plan) *run {
	base := p.Base
	sites := make([]bpf.TracerSite, len(base.Sites))
	r := &run{sites: map[uint64]int{}}
	for i := range base.Sites {
		sites[i] = attach.KernelSite(base, &base.Sites[i])
		r.sites[base.Sites[i].Addr] = i
	}
	calls := map[uint64]bpf.TracerCall{}
	for ra, c := range base.Calls {
		calls[ra] = bpf.MakeCall(ra, c.Depth, c.AfterEvent, c.Caller)
	}
	r.machine = usermode.New(sites, calls, s.Trace.Bias, 1<<32)
	r.setLooks(p)
	r.thread = usermode.NewThread(thread, started, false)
	return r
}

// mapPages has the pages be there that the steps access.
func (r *run) mapPages(steps []truth.Step) {
	const words = 512
	for i := range steps {
		for _, m := range slices.Concat(steps[i].Reads, steps[i].Writes) {
			page := m.Addr / (8 * words) * (8 * words)
			if _, mapped := r.machine.Memory[page]; !mapped {
				for k := range uint64(words) {
					r.machine.Memory[page+8*k] = 0
				}
			}
		}
	}
}

// foresee puts into memory what the steps read before they write it, up to where external code
// runs: that has put it there.
func (r *run) foresee(steps []truth.Step) {
	known := map[uint64]bool{}
	for i := range steps {
		if i > 0 && len(steps[i].Before) > 0 {
			return
		}
		for _, m := range steps[i].Reads {
			for k, b := range m.Bytes {
				if at := m.Addr + uint64(k); !known[at] {
					known[at] = true
					r.storeByte(at, b)
				}
			}
		}
		for _, m := range steps[i].Writes {
			for k := range m.Bytes {
				known[m.Addr+uint64(k)] = true
			}
		}
	}
}

func (r *run) store(m truth.MemoryValue) {
	for k, b := range m.Bytes {
		r.storeByte(m.Addr+uint64(k), b)
	}
}

func (r *run) storeByte(at uint64, b byte) {
	shift := at & 7 * 8
	r.machine.Memory[at&^7] = r.machine.Memory[at&^7]&^(0xff<<shift) | uint64(b)<<shift
}

func (r *run) registers() *usermode.Registers {
	regs := &usermode.Registers{Flags: r.replay.Registers[truth.Flags]}
	copy(regs.General[:], r.replay.Registers[:])
	return regs
}

func (r *run) hit(site int) {
	r.machine.FSBase = r.replay.Registers[truth.FSBase]
	r.machine.Hit(r.thread, uint32(site), r.registers())
}

// setLooks gives the process the load programs.
func (r *run) setLooks(p *loads.Plan) {
	sites := p.Base.Sites
	for i := range p.Looks {
		condition := uint8(0)
		if i < len(sites) {
			condition = sites[i].Condition
		} else {
			x := &p.Extra[i-len(sites)]
			condition, r.sites[x.Addr] = x.Condition, loads.FirstExtra+i-len(sites)
		}
		r.machine.Looks = append(r.machine.Looks, attach.KernelLook(&p.Looks[i], condition, 0))
	}
	r.machine.Steps, r.machine.Cases = attach.KernelSteps(p.Steps), p.Cases
	r.machine.After = p.After
}
