package attach

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"

	"wpptrace/loader/image"
	"wpptrace/loader/target"
)

// An Obstacle is code of an image that cannot be traced in a process, whatever it is.
type Obstacle struct {
	Lo, Hi uint64 // link-time addresses, Hi exclusive
	Why    string // and what to do, where there is something
}

// What is in the way of probes. Into the first five the kernel would put none, without an error.
const (
	inWritable = "its code is in writable memory, where the kernel puts no probes: " +
		"link it without -N (--omagic), or have the program take write access away (mprotect)"
	inShared = "its code is in memory that is shared, where the kernel puts no probes"
	unmapped = "its code is not in memory any more: the process has unmapped it (munmap)"
	inOther  = "its code was moved to memory that is not its file's, " +
		"where the kernel puts no probes: " +
		"start it without moving its code, as programs do for huge pages"
	copiedUp = "its file was copied up by overlayfs since it was started, " +
		"and the kernel takes the copy for another file: restart it"
	changed = "its code is not the file's: code that is changed at run time cannot be traced"
)

// Obstacles lists where the image of a process's executable, whose file is open, cannot be traced.
// Nothing is attached. It fails where nothing can be traced: its code is not in memory as the file
// has it, or somebody else's breakpoints stand in it; with the latter it returns the list of all
// else. Cost: the code of the process is read, some 0.3 ms a megabyte.
func Obstacles(p *target.Process, im *image.Image, file *os.File) ([]Obstacle, error) {
	base, err := Base(p, im)
	if err != nil {
		return nil, err
	}
	return (&mapped{image: im, file: file, base: base}).obstacles(p)
}

func (m *mapped) obstacles(p *target.Process) ([]Obstacle, error) {
	list, err := m.misplaced(p)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(list, func(o Obstacle) bool { return o.Why == unmapped }) {
		if err := checkMemory(p); err != nil { // nor has it unmapped its code
			return nil, err
		}
	}
	altered, err := m.altered(p, list)
	return append(list, altered...), err
}

// misplaced lists the code that is in memory where the kernel puts no probes.
func (m *mapped) misplaced(p *target.Process) (list []Obstacle, err error) {
	for _, s := range m.image.Segments {
		lo, hi := m.base+s.Addr, m.base+s.Addr+s.FileLen
		regions, err := p.Regions(m.file, lo, hi)
		if err != nil {
			return nil, err
		}
		at := lo
		add := func(to uint64, why string) {
			if to > at && why != "" {
				list = append(list, Obstacle{at - m.base, to - m.base, why})
			}
			at = max(at, to)
		}
		for _, r := range regions {
			add(r.Lo, unmapped)
			why, err := m.unprobeable(p, r, s)
			if err != nil {
				return nil, err
			}
			add(min(r.Hi, hi), why)
		}
		add(hi, unmapped)
	}
	return list, nil
}

// unprobeable says why the kernel would put no probe into a region that has the code of a segment;
// "": it would (valid_vma in kernel/events/uprobes.c).
func (m *mapped) unprobeable(
	p *target.Process, r target.Region, s image.Segment,
) (why string, err error) {
	switch offset := r.Lo - m.base - s.Addr + s.Offset; {
	case !r.OfFile || r.Offset != offset:
		return inOther, nil
	case r.Write:
		return inWritable, nil
	case r.Shared:
		return inShared, nil
	}
	copied, err := p.CopiedUp(m.file, r)
	if copied {
		return copiedUp, err
	}
	return "", err
}

// altered lists the code that is not the file's, but for what is in the list already, which is not
// read: it may not be there, or answer nobody.
func (m *mapped) altered(p *target.Process, known []Obstacle) (list []Obstacle, err error) {
	for _, s := range m.image.Sections {
		if !s.Exec {
			continue
		}
		lo, end := s.Addr, s.Addr+uint64(len(s.Data))
		for lo < end {
			hi := end
			for _, o := range known { // the part before the next obstacle, or behind this one
				switch {
				case o.Lo <= lo && lo < o.Hi:
					lo = o.Hi
				case lo < o.Lo:
					hi = min(hi, o.Lo)
				}
			}
			if lo < hi {
				part, partErr := m.compare(p, lo, s.Data[lo-s.Addr:hi-s.Addr])
				list = append(list, part...)
				if partErr != nil && !errors.Is(partErr, ErrBreakpoint) {
					return list, partErr
				}
				err = cmp.Or(err, partErr)
			}
			lo = max(lo, hi)
		}
	}
	return list, err
}

// compare lists what of the code from lo on is not that of the file. A byte that a breakpoint has
// replaced is not in the list, but makes the error: the code goes on as the file has it.
func (m *mapped) compare(
	p *target.Process, lo uint64, file []byte,
) (list []Obstacle, found error) {
	const chunk = 1 << 20
	text := make([]byte, min(chunk, len(file)))
	for ; len(file) > 0; lo, file = lo+uint64(len(text)), file[len(text):] {
		text = text[:min(len(text), len(file))]
		if err := p.ReadMemory(text, m.base+lo); err != nil {
			return list, err
		}
		if bytes.Equal(text, file[:len(text)]) {
			continue
		}
		for i, b := range text {
			if b != file[i] {
				list = grown(list, lo+uint64(i))
			}
		}
		list = slices.DeleteFunc(list, func(o Obstacle) bool {
			alone := o.Hi-o.Lo == 1 && o.Lo >= lo && text[o.Lo-lo] == breakpoint
			if alone && found == nil {
				found = fmt.Errorf("the code of process %d at %x%s: %w; a recording is refused "+
					"where one of its probes would stand there", p.PID, o.Lo, m.within(o.Lo),
					ErrBreakpoint)
			}
			return alone
		})
	}
	return list, found
}

// within says which function an address is in; "": no symbol says so.
func (m *mapped) within(addr uint64) string {
	for _, s := range m.image.Symbols() {
		if s.Addr <= addr && addr-s.Addr < s.Size {
			return " in " + s.Name
		}
	}
	return ""
}

// grown adds a byte to code that was changed.
func grown(list []Obstacle, addr uint64) []Obstacle {
	if n := len(list); n > 0 && list[n-1].Hi == addr {
		list[n-1].Hi++
		return list
	}
	return append(list, Obstacle{addr, addr + 1, changed})
}

// InTheWay says why code cannot be traced; "": no obstacle has any of it.
func InTheWay(list []Obstacle, ranges [][2]uint64) (why string) {
	for _, r := range ranges {
		for _, o := range list {
			if o.Lo < r[1] && r[0] < o.Hi {
				return o.Why
			}
		}
	}
	return ""
}

// whyAbsent says why a probe does not stand that the kernel has put in, as it said.
func (m *mapped) whyAbsent(p *target.Process, addr uint64) error {
	list, err := m.obstacles(p)
	if err != nil && !errors.Is(err, ErrBreakpoint) { // ours stand
		return err
	}
	if why := InTheWay(list, [][2]uint64{{addr, addr + 1}}); why != "" {
		return errors.New(why)
	}
	if target.OnOverlay(m.file) {
		return errors.New("its file is on overlayfs, " +
			"and may have been copied up since it was started: restart it")
	}
	return errors.New("its code was changed meanwhile, or its file was")
}
