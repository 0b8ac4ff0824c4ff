package attach

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"

	"github.com/cilium/ebpf"

	"wpptrace/loader/cfg"
	"wpptrace/loader/guard"
	"wpptrace/loader/image"
	"wpptrace/loader/plan"
	"wpptrace/loader/target"
	"wpptrace/loader/uprobe"
)

// A mapped is an image in the memory of the process, with its share of the plan.
type mapped struct {
	image   *image.Image
	program *cfg.Program
	sites   []plan.Site
	first   int      // the cookie of the first of them
	file    *os.File // the executable's is known from Attach on
	base    uint64   // load address minus link-time address
	absent  bool     // it was mapped, and is not any more
	tables  []uint64 // pages of tables that probed jumps read; nil: not looked for yet
	copied  bool     // with copies of the breakpoints of another process that has the same sites
	probes  *guard.Probes
}

func newMapped(part *plan.Part, base uint64) *mapped {
	return &mapped{image: part.Program.Image, program: part.Program, sites: part.Sites,
		first: part.First, base: base}
}

// probe puts the probes in, in random order: the process is held up where the first of them are,
// and what it does when all are in must not depend on the place of that in the program. Where the
// image is not mapped, the kernel does so when it is.
func (m *mapped) probe(g *guard.Guard, mechanism uprobe.Mechanism, p *target.Process,
	hit *ebpf.Program) error {
	n := len(m.sites)
	if n == 0 {
		return nil
	}
	offsets, cookies := make([]uint64, n), make([]uint64, n)
	for k, i := range rand.Perm(n) {
		offset, ok := m.image.FileOffset(m.sites[i].Addr)
		if !ok || offset == 0 {
			return fmt.Errorf("%x has no place in the file", m.sites[i].Addr)
		}
		offsets[k], cookies[k] = offset, uint64(m.first+i)
	}
	m.bringTablesIn(p)
	var err error
	if m.probes, err = g.Probe(mechanism, m.file, hit, offsets, cookies, p.PID); err != nil {
		return fmt.Errorf("put in %d probes: %w", n, probeError(err))
	}
	return nil
}

// find looks where a library is now: nowhere, or in one place. It is an error if it is in more.
func (m *mapped) find(p *target.Process) error {
	mappings, err := p.Mappings(m.file)
	if err != nil {
		return err
	}
	all := bases(mappings, m.image)
	if len(all) > 1 {
		return errors.New("it is mapped more than once")
	}
	if m.absent = len(all) == 0; !m.absent {
		m.base = all[0]
	}
	return nil
}

// page is the size of a page of memory, bytes.
const page = 4096

// probedMemory is how many bytes the pages have that have probes.
func (m *mapped) probedMemory() uint64 {
	n, last := uint64(0), ^uint64(0)
	for i := range m.sites { // in the order of their addresses
		if at := m.sites[i].Addr / page; at != last {
			n, last = n+1, at
		}
	}
	return n * page
}

// unprobe takes the probes out.
func (m *mapped) unprobe() error {
	if m.probes == nil {
		return nil
	}
	err := m.probes.Close()
	m.probes = nil
	return err
}
