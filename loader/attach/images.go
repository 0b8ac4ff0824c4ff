package attach

import (
	"fmt"
	"os"
	"slices"

	"github.com/cilium/ebpf"

	"wpptrace/bpf"
	"wpptrace/internal/remedy"
	"wpptrace/loader/guard"
	"wpptrace/loader/plan"
	"wpptrace/loader/target"
	"wpptrace/loader/uprobe"
)

// images are the images in the memory of the process that the plan has parts of: the probes in
// them, and what the BPF program knows of them.
type images struct {
	process   *target.Process
	objects   *bpf.TracerObjects
	mechanism uprobe.Mechanism
	plan      *plan.Plan
	looks     looks
	calls     *bpf.CallTable
	list      []*mapped // part by part of the plan: first the executable

	changes   Changes
	goingOn   bool   // there may be hits of probes that are out
	libraries bool   // those that Session.Add names are traced too
	refreshed uint32 // times that the process had mapped code at the last refresh
}

func (x *images) executable() *mapped { return x.list[0] }

// add takes in the image of the plan's next part.
func (x *images) add(m *mapped) error {
	calls := partCalls(x.plan, len(x.list))
	x.list = append(x.list, m)
	if err := x.writeSites(m, len(x.list)-1); err != nil {
		return err
	}
	entries, err := x.calls.Add(calls)
	if err != nil {
		return err
	}
	if err := x.writeCalls(entries); err != nil {
		return err
	}
	return x.writePlaces()
}

// writeSites writes the sites of an image into the kernel's table. library is its number, 0 for the
// executable.
func (x *images) writeSites(m *mapped, library int) error {
	calls := func(ra uint64) plan.Call { return x.plan.Calls[ra+x.plan.Parts[library].Offset] }
	sites, entries := make([]bpf.TracerSite, len(m.sites)), make([]uint32, len(m.sites))
	for i := range m.sites {
		sites[i], entries[i] = siteOf(&m.sites[i], calls), uint32(m.first+i)
		sites[i].Library = uint8(library)
	}
	if err := write(x.objects.Sites, entries, sites); err != nil {
		return fmt.Errorf("write %d sites: %w", len(sites), err)
	}
	return x.looks.write(m.first, m.sites, library)
}

// writeCalls writes entries of the table of calls into the kernel's.
func (x *images) writeCalls(entries []uint32) error {
	calls := make([]bpf.TracerCall, len(entries))
	for i, e := range entries {
		calls[i] = x.calls.Entries[e]
	}
	if err := write(x.objects.Calls, entries, calls); err != nil {
		return fmt.Errorf("write %d calls: %w", len(calls), err)
	}
	return x.looks.writeAfter(entries, calls)
}

func write[T any](m *ebpf.Map, keys []uint32, entries []T) error {
	if len(entries) == 0 {
		return nil
	}
	_, err := m.BatchUpdate(keys, entries, nil)
	return err
}

// partCalls lists the calls of a part as the kernel has them.
func partCalls(p *plan.Plan, part int) []bpf.TracerCall {
	lo, hi := p.Parts[part].Offset, ^uint64(0)
	if part+1 < len(p.Parts) {
		hi = p.Parts[part+1].Offset
	}
	var calls []bpf.TracerCall
	for ra, c := range p.Calls {
		if ra < lo || ra >= hi {
			continue
		}
		calls = append(calls, bpf.MakeCall(ra, c.Depth, c.AfterEvent, c.Caller))
	}
	return calls
}

// places is where the libraries are, as the BPF program has it.
func (x *images) places() (list [MaxLibraries]bpf.TracerLibrary) {
	for i, m := range x.list[1:] {
		list[i] = bpf.TracerLibrary{
			Bias: m.base, Size: textEnd(m.image), First: m.image.Segments[0].Addr,
			Offset: x.plan.Parts[i+1].Offset,
		}
		if m.absent {
			list[i].Size = 0
		}
	}
	return list
}

func (x *images) writePlaces() error {
	err := x.objects.Libraries.Set(x.places())
	if err == nil {
		err = x.objects.LibraryCount.Set(uint32(len(x.list) - 1))
	}
	if err != nil {
		return fmt.Errorf("note where its libraries are: %w", err)
	}
	return nil
}

// locate finds the libraries and has the BPF program know where they are, until they have stayed
// there: where the process is not held it may unmap one meanwhile.
func (x *images) locate() error {
	for written := false; ; written = true {
		before := x.places()
		for _, m := range x.list[1:] {
			if err := m.find(x.process); err != nil {
				return traceError(m, x.process, err)
			}
		}
		if written && x.places() == before {
			return nil
		}
		if err := x.writePlaces(); err != nil {
			return err
		}
	}
}

// traceError names the library of an error.
func traceError(m *mapped, p *target.Process, err error) error {
	return fmt.Errorf("trace %s in process %d (%s): %w", m.image.Name, p.PID, p.Name, err)
}

// hasMapped reports whether the process has mapped code since the last refresh.
func (x *images) hasMapped() bool {
	var n uint32
	return x.libraries && x.objects.Mapped.Get(&n) == nil && n != x.refreshed
}

// refresh looks where the libraries are now.
func (x *images) refresh() error {
	if err := x.objects.Mapped.Get(&x.refreshed); err != nil {
		return fmt.Errorf("read what process %d has mapped: %w", x.process.PID, err)
	}
	return x.locate()
}

// ifPresent checks a library where it is mapped. Where the process has unmapped it meanwhile, or
// code has been mapped so that the next refresh is to look, it is absent.
func (x *images) ifPresent(m *mapped, check func(m *mapped, p *target.Process) error) error {
	if m.absent {
		return nil
	}
	err := check(m, x.process)
	if err == nil {
		return nil
	}
	if findErr := m.find(x.process); findErr != nil {
		return findErr
	}
	if m.absent = m.absent || x.hasMapped(); m.absent {
		return nil
	}
	return err
}

// check calls a check for groups, those of libraries where they are mapped.
func (x *images) check(list []place,
	check func(m *mapped, p *target.Process, sites []plan.Site) error) error {
	for _, at := range list {
		one := func(m *mapped, p *target.Process) error { return check(m, p, at.group.sites) }
		var err error
		if at.mapped == x.executable() {
			err = one(at.mapped, x.process)
		} else {
			err = x.ifPresent(at.mapped, one)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkMemory fails when probes in those images could have the kernel kill a process that gets them
// for the lack of memory: each page that has any is copied, on account of the control groups that
// the process is in. As much again is to be left to it.
func (x *images) checkMemory(list ...*mapped) error {
	var takes uint64
	for _, m := range list {
		if !m.absent {
			takes += m.probedMemory()
		}
	}
	return CheckMemory(x.process, x.mechanism, x.executable().file, takes)
}

// CheckMemory fails when probes of a process, whose executable is open, take so many bytes of its
// memory that the kernel could kill it for the lack of that: as much again is to be left to it.
func CheckMemory(p *target.Process, mechanism uprobe.Mechanism, exe *os.File, takes uint64) error {
	probed := []int{p.PID}
	if mechanism != uprobe.ProcessLink {
		others := target.RunningFrom(exe)
		probed = append(probed,
			slices.DeleteFunc(others, func(pid int) bool { return pid == p.PID })...)
	}
	if left := target.MemoryLeft(probed...); takes > left/2 {
		return remedy.Errorf(remedy.LessMemory, "put probes in: they take %.1f MiB of its "+
			"memory, a page for each that has any, and control groups leave it %.1f",
			float64(takes)/(1<<20), float64(left)/(1<<20))
	}
	return nil
}

// out lists the groups whose probes are not in the process, the hot ones last.
func (x *images) out() (list []place) {
	for _, m := range x.list {
		for _, g := range m.cold {
			if g.isOut() {
				list = append(list, place{m, g})
			}
		}
	}
	for _, m := range x.list {
		if m.hot().isOut() {
			list = append(list, place{m, m.hot()})
		}
	}
	return list
}

// in lists the groups whose probes are in the process, the hot ones first.
func (x *images) in() []place { return append(x.hot(), x.cold()...) }

// cold lists the cold groups whose probes are in the process.
func (x *images) cold() (list []place) {
	for _, m := range x.list {
		for _, g := range m.cold {
			if g.placed != nil {
				list = append(list, place{m, g})
			}
		}
	}
	return list
}

// hot lists the hot groups whose probes are in the process.
func (x *images) hot() (list []place) {
	for _, m := range x.list {
		if m.hot().placed != nil {
			list = append(list, place{m, m.hot()})
		}
	}
	return list
}

// left is how many breakpoints of ours stand where there is to be no probe any more. An error says
// that some could not be read.
func (x *images) left() (n int, err error) {
	for _, m := range x.list {
		some, failed := m.left(x.process)
		if n += some; failed != nil {
			err = failed
		}
	}
	return n, err
}

// clearCopies takes copies of probes out of all processes but ours, as Session.ClearCopies: an
// empty program is put at the same places, for the guard, which has none of them, and goes again.
func (x *images) clearCopies(g *guard.Guard, first, most int) (n int, err error) {
	for _, at := range x.in() {
		m, all := at.mapped, at.group.sites
		sites := all[min(first, len(all)):min(first+most-n, len(all))]
		first -= min(first, len(all))
		if len(sites) == 0 {
			continue
		}
		offsets := make([]uint64, len(sites))
		for i := range sites {
			offsets[i], _ = m.image.FileOffset(sites[i].Addr) // as when they were put in
		}
		second, err := g.Probe(x.mechanism, m.file, x.objects.EmptyProbe, offsets, nil, g.PID(),
			guard.AnyCPU)
		if err == nil {
			err = second.Close()
		}
		if err != nil {
			return n, err
		}
		n += len(sites)
	}
	return n, nil
}
