package coverage

import (
	"cmp"
	"slices"
	"strconv"

	"wpptrace/internal/traced"
	"wpptrace/loader/firsthit"
	"wpptrace/loader/image"
)

// A mapped is an image in the memory of a process.
type mapped struct {
	graphs *traced.Graphs
	base   uint64
	lines  *image.Lines // nil: there are none
}

// spanOf is the code that unwind information describes around a link-time address, or nil.
func (m *mapped) spanOf(addr uint64) *image.Range {
	ranges := m.graphs.Image.Ranges
	i, found := slices.BinarySearchFunc(ranges, addr,
		func(r image.Range, addr uint64) int { return cmp.Compare(r.Lo, addr) })
	if !found {
		i--
	}
	if i < 0 || addr >= ranges[i].Hi {
		return nil
	}
	return &ranges[i]
}

// A Frame is a place in an activation.
type Frame struct {
	Image   string `json:"image"`          // base name of the file
	Routine string `json:"routine"`        // its name
	Address string `json:"address"`        // link-time, in hex; of a caller, behind the call
	File    string `json:"file,omitempty"` // of the line; absent: not known
	Line    int    `json:"line,omitempty"` // of a caller, that of the call; absent: not known
}

// frame names a place; at is where its line is looked up.
func (m *mapped) frame(addr, at uint64) Frame {
	f := Frame{Image: m.graphs.Image.Name, Address: strconv.FormatUint(addr, 16)}
	if r := m.graphs.Containing(at); r != nil {
		f.Routine = r.Name
	}
	if m.lines != nil {
		if file, line, ok := m.lines.At(at); ok {
			f.File, f.Line = file, line
		}
	}
	return f
}

// mostFrames is how long a chain of callers is at most.
const mostFrames = 64

// chain returns the callers of the activation that a trace is in, the innermost first, by unwind
// information. It ends, and is not whole, where a caller is in none of the images, as libraries are
// that are not observed, where the stack was not read that far, or unwind information says too
// little.
func chain(t *firsthit.Trace, images []mapped) (list []Frame, whole bool) {
	pc, sp, fp, fpKnown := t.PC, t.SP, t.FP, true
	for back := uint64(0); len(list) < mostFrames; back = 1 {
		m := imageAt(images, pc-back)
		if m == nil {
			return list, false
		}
		addr := pc - m.base
		if back == 1 {
			list = append(list, m.frame(addr, addr-back))
		}
		span := m.spanOf(addr - back)
		if span == nil {
			return list, false
		}
		row, rule, ok := span.Unwind(addr - back)
		if !ok || row.RA != image.RAAtCFA {
			return list, ok && row.RA == image.RAUndefined
		}
		cfa, ok := frameAddress(t, row.CFA, sp, fp, fpKnown)
		if !ok {
			return list, false
		}
		const word = 8
		ra, ok := t.Word(cfa - word)
		if !ok || cfa <= sp {
			return list, false
		}
		switch {
		case rule.Fault:
			fpKnown = false
		case rule.Off != 0:
			fp, fpKnown = t.Word(cfa + uint64(int64(rule.Off)))
		}
		pc, sp = ra, cfa
	}
	return list, false
}

// frameAddress is the canonical frame address that a rule gives.
func frameAddress(t *firsthit.Trace, rule image.CFA, sp, fp uint64, fpKnown bool) (uint64, bool) {
	const rsp, rbp = 7, 6
	off := uint64(int64(rule.Off))
	switch {
	case rule.Reg == rsp:
		return sp + off, true
	case rule.Reg == rbp && fpKnown:
		return fp + off, true
	case rule.Reg == image.Slot && fpKnown:
		return t.Word(fp + off)
	}
	return 0, false
}

// imageAt is the image that has the code at an address of the process, or nil.
func imageAt(images []mapped, at uint64) *mapped {
	for i := range images {
		m := &images[i]
		if at >= m.base && m.spanOf(at-m.base) != nil {
			return m
		}
	}
	return nil
}
