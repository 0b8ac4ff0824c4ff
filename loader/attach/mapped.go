package attach

import (
	"errors"
	"os"
	"slices"

	"wpptrace/loader/cfg"
	"wpptrace/loader/image"
	"wpptrace/loader/loads"
	"wpptrace/loader/plan"
	"wpptrace/loader/target"
)

// A mapped is an image in the memory of the process, with its share of the plan: its sites, each in
// one group. Cold groups stay in the process between windows; the hot one is of all other sites.
type mapped struct {
	image   *image.Image
	program *cfg.Program
	sites   []plan.Site
	first   int         // the cookie of the first of them
	extra   []plan.Site // of probes for values alone: in the hot group, and nowhere in the plan
	file    *os.File    // the executable's is known from Attach on
	base    uint64      // load address minus link-time address
	absent  bool        // it was mapped, and is not any more
	tables  []uint64    // pages of tables that probed jumps read; nil: not looked for yet
	copied  bool        // with copies of the breakpoints of another process that has the same sites
	cold    []*group
	others  *group // the hot one; nil: it is to be made
}

func newMapped(part *plan.Part, base uint64) *mapped {
	return &mapped{image: part.Program.Image, program: part.Program, sites: part.Sites,
		first: part.First, base: base}
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
	pages := map[uint64]bool{}
	for _, s := range slices.Concat(m.sites, m.extra) {
		pages[s.Addr/page] = true
	}
	return uint64(len(pages)) * page
}

// groupOf makes a group of some sites of the image, whose indices ascend.
func (m *mapped) groupOf(sites []int) *group {
	g := &group{}
	for _, i := range sites {
		g.sites = append(g.sites, m.sites[i])
		g.cookies = append(g.cookies, uint64(m.first+i))
	}
	return g
}

// hot is the group of all sites that are in no cold one. It is made when it is asked for: cold ones
// come by the hundred.
func (m *mapped) hot() *group {
	if m.others != nil {
		return m.others
	}
	isCold := make([]bool, len(m.sites))
	for _, g := range m.cold {
		for _, c := range g.cookies {
			isCold[int(c)-m.first] = true
		}
	}
	var rest []int
	for i, cold := range isCold {
		if !cold {
			rest = append(rest, i)
		}
	}
	m.others = m.groupOf(rest)
	for i := range m.extra { // behind the others, for cookies ascend
		m.others.sites = append(m.others.sites, m.extra[i])
		m.others.cookies = append(m.others.cookies, uint64(loads.FirstExtra+i))
	}
	return m.others
}
