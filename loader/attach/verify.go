package attach

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"wpptrace/loader/arch"
	"wpptrace/loader/guard"
	"wpptrace/loader/image"
	"wpptrace/loader/plan"
	"wpptrace/loader/target"
)

// Base is where the image is mapped: what to add to a link-time address.
func Base(p *target.Process, im *image.Image) (uint64, error) {
	mappings, err := p.ExecutableMappings()
	if err != nil {
		return 0, err
	}
	if all := bases(mappings, im); len(all) > 0 {
		return all[0], nil
	}
	if len(mappings) > 0 {
		return 0, fmt.Errorf("find the code of %s in the memory of process %d: %s", im.Name, p.PID,
			inOther)
	}
	if err := checkMemory(p); err != nil {
		return 0, err
	}
	return 0, fmt.Errorf("find %s in the memory of process %d: it is not mapped: if it has just "+
		"been started, try again", im.Name, p.PID)
}

// checkMemory fails where the process has no memory any more, since it exits: nothing is mapped.
func checkMemory(p *target.Process) error {
	exe, err := p.Executable()
	if err != nil {
		return err
	}
	return exe.Close()
}

// bases lists the different places where an image is mapped.
func bases(mappings []target.Mapping, im *image.Image) (list []uint64) {
	for _, m := range mappings {
		for _, s := range im.Segments {
			if base := m.Lo - s.Addr&^(page-1); m.Exec && m.Offset == s.Offset&^(page-1) &&
				!slices.Contains(list, base) {
				list = append(list, base)
			}
		}
	}
	return list
}

// breakpoint is what a probe puts into the text.
var breakpoint = arch.Native.Breakpoint()

// ErrBreakpoint says that somebody else's probe stands in the text: what ours would replace is not
// known then.
var ErrBreakpoint = errors.New("a breakpoint stands there already: detach the debugger or other " +
	"tracer")

// untouched fails when the text that probes are to go into is not the file's.
func (m *mapped) untouched(p *target.Process, sites []plan.Site) error {
	return m.readSites(p, sites, func(site *plan.Site, b byte) error {
		switch file := m.image.Bytes(site.Addr, site.Addr+1); {
		case len(file) == 1 && file[0] == b:
			return nil
		case b == breakpoint && m.copied:
			return nil
		case b == breakpoint:
			return fmt.Errorf("its text at %x in %s: %w", site.Addr, m.nameOf(site), ErrBreakpoint)
		}
		return fmt.Errorf("its text at %x in %s is not the file's: code that is changed at run "+
			"time cannot be traced", site.Addr, m.nameOf(site))
	})
}

// nameOf is the name of a site's routine.
func (m *mapped) nameOf(s *plan.Site) string { return m.program.Containing(s.Addr).Name }

// standing fails when a probe does not stand: some failures to put one in give no error.
func (m *mapped) standing(p *target.Process, sites []plan.Site) error {
	return m.readSites(p, sites, func(site *plan.Site, b byte) error {
		if b == breakpoint {
			return nil
		}
		return fmt.Errorf("the probe at %x in %s does not stand: %w", site.Addr, m.nameOf(site),
			m.whyAbsent(p, site.Addr))
	})
}

// GuardLostError is guard.ErrGone, when the guard has been killed, with what has become of its
// probes: the kernel may leave some in that were about to go in. It waits for the guard's end, but
// not for long. What has given up its capabilities may not look any more.
func (s *Session) GuardLostError() error {
	const removal = 10 * time.Second // of very many probes
	select {
	case <-s.guard.Gone():
	case <-time.After(removal):
		return fmt.Errorf("%w, and the kernel is at taking its probes out", guard.ErrGone)
	}
	left, unread := s.images.left()
	switch {
	case left > 0:
		return fmt.Errorf("%w, and the kernel has left %d of its probes in, which cost time "+
			"until the process ends: restart it when you can", guard.ErrGone, left)
	case unread == nil:
		return fmt.Errorf("%w, and its probes are out", guard.ErrGone)
	case !s.process.Alive():
		return guard.ErrGone
	}
	return fmt.Errorf("%w; could not verify that its probes were removed: %w", guard.ErrGone,
		unread)
}

// left is how many breakpoints stand in the text of the process where probes were, and not in the
// file's.
func (m *mapped) left(p *target.Process) (n int, err error) {
	if m.absent {
		return 0, nil
	}
	err = m.readSites(p, slices.Concat(m.sites, m.extra), func(site *plan.Site, b byte) error {
		if file := m.image.Bytes(site.Addr, site.Addr+1); b == breakpoint && len(file) == 1 &&
			file[0] != b {
			n++
		}
		return nil
	})
	return n, err
}

// readSites hands over the first byte of the instruction of each site as it is in the memory of the
// process. Nearly all are in the order of addresses, which is fast.
func (m *mapped) readSites(p *target.Process, sites []plan.Site,
	check func(s *plan.Site, b byte) error) error {
	const chunk = 4096
	buf := make([]byte, chunk)
	for i := 0; i < len(sites); {
		lo := sites[i].Addr
		n := 1
		for i+n < len(sites) && sites[i+n].Addr >= sites[i+n-1].Addr &&
			sites[i+n].Addr-lo < chunk {
			n++
		}
		part := buf[:sites[i+n-1].Addr-lo+1]
		if err := p.ReadMemory(part, m.base+lo); err != nil {
			return err
		}
		for k := i; k < i+n; k++ {
			if err := check(&sites[k], part[sites[k].Addr-lo]); err != nil {
				return err
			}
		}
		i += n
	}
	return nil
}
