package truth

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// A Stream is what the tracer says one thread executed in one image.
type Stream struct {
	TID   int
	Insns []uint64 // link-time addresses
	Marks []Mark
}

// A Mark is a line that starts with #. It stands before Insns[Index].
type Mark struct {
	Index int
	Kind  string // "gap", "resume", "unwind", "cut", "handler"
}

// maxLine bounds a line of the tracer's output: a demangled name can be long.
const maxLine = 1 << 20

// ParseInsns reads the lines of `wpptrace dump --as insns`, `TID IMAGE ADDRESS`, for one image ("":
// all), and gives a stream for each thread in order of first appearance. Addresses of libraries are
// as Placed has them. A mark, `#KIND [COUNT]`, stands before the next instruction; where that is a
// new thread's first, a cut or an unwinding belongs to the thread before.
func ParseInsns(r io.Reader, image string, libraries ...string) ([]*Stream, error) {
	p := insnParser{image: image, libraries: libraries, byTID: map[int]*Stream{}}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	for n := 1; lines.Scan(); n++ {
		if err := p.line(lines.Text()); err != nil {
			return nil, fmt.Errorf("parse dump of instructions, line %d: %w", n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read dump of instructions: %w", err)
	}
	p.settle(p.last)
	return p.streams, nil
}

type insnParser struct {
	image     string
	libraries []string
	streams   []*Stream
	byTID     map[int]*Stream
	last      *Stream
	pending   []string // kinds of the marks since the last instruction
	insns     int      // of all streams
}

func (p *insnParser) line(line string) error {
	if mark, ok := strings.CutPrefix(line, "#"); ok {
		if words := strings.Fields(mark); len(words) > 0 {
			p.pending = append(p.pending, words[0])
		}
		return nil
	}
	fields := strings.Fields(line)
	if len(fields) == 0 {
		return nil
	}
	if len(fields) != 3 {
		return fmt.Errorf("%d fields in %q, not 3", len(fields), line)
	}
	tid, err := strconv.Atoi(fields[0])
	if err != nil {
		return fmt.Errorf("thread id %q: not a number", fields[0])
	}
	pc, err := strconv.ParseUint(fields[2], 16, 64)
	if err != nil {
		return fmt.Errorf("address %q: not a hexadecimal number", fields[2])
	}
	if p.image != "" && fields[1] != p.image {
		return nil
	}
	s := p.byTID[tid]
	if s == nil {
		s = &Stream{TID: tid}
		p.byTID[tid] = s
		p.streams = append(p.streams, s)
	}
	p.settle(s)
	s.Insns = append(s.Insns, Placed(p.libraries, fields[1], pc))
	p.last = s
	p.insns++
	return nil
}

// settle gives the pending marks to the thread of the next instruction, or to the one before.
func (p *insnParser) settle(next *Stream) {
	for _, kind := range p.pending {
		s := next
		if ends := kind == "cut" || kind == "unwind"; s != nil && len(s.Insns) == 0 && ends &&
			p.last != nil {
			s = p.last
		}
		if s != nil {
			s.Marks = append(s.Marks, Mark{len(s.Insns), kind})
		}
	}
	p.pending = p.pending[:0]
}

// A Routine is one contiguous range of a routine, as `wpptrace stat --routines` lists it.
type Routine struct {
	Start, End uint64 // End is exclusive
	Traced     bool
	Reason     string // why it was left out
	Name       string
}

// Routines are the ranges of one image, sorted by Start.
type Routines []Routine

// ParseRoutines reads the tab-separated lines of `wpptrace stat --routines`, `IMAGE START END STATE
// NAME`, for one image ("": all).
func ParseRoutines(r io.Reader, image string, libraries ...string) (Routines, error) {
	var routines Routines
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	for n := 1; lines.Scan(); n++ {
		fields := strings.SplitN(lines.Text(), "\t", 5)
		if len(fields) != 5 {
			return nil, fmt.Errorf("parse list of routines, line %d: %d fields, not 5", n,
				len(fields))
		}
		if image != "" && fields[0] != image {
			continue
		}
		routine, err := parseRoutine(fields)
		if err != nil {
			return nil, fmt.Errorf("parse list of routines, line %d: %w", n, err)
		}
		routine.Start, routine.End = Placed(libraries, fields[0], routine.Start), Placed(libraries,
			fields[0], routine.End)
		routines = append(routines, routine)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read list of routines: %w", err)
	}
	slices.SortFunc(routines, func(a, b Routine) int { return cmp.Compare(a.Start, b.Start) })
	return routines, nil
}

func parseRoutine(fields []string) (r Routine, err error) {
	if r.Start, err = strconv.ParseUint(fields[1], 16, 64); err != nil {
		return r, fmt.Errorf("start %q: not a hexadecimal number", fields[1])
	}
	if r.End, err = strconv.ParseUint(fields[2], 16, 64); err != nil {
		return r, fmt.Errorf("end %q: not a hexadecimal number", fields[2])
	}
	r.Name = fields[4]
	reason, leftOut := strings.CutPrefix(fields[3], "left-out:")
	if !leftOut && fields[3] != "observed" {
		return r, fmt.Errorf("state %q: neither observed nor left-out", fields[3])
	}
	r.Traced, r.Reason = !leftOut, reason
	return r, nil
}

// Find returns the range that holds an address.
func (rs Routines) Find(pc uint64) (Routine, bool) {
	i, found := slices.BinarySearchFunc(rs, pc,
		func(r Routine, pc uint64) int { return cmp.Compare(r.Start, pc) })
	if !found {
		i--
	}
	if i < 0 || pc >= rs[i].End {
		return Routine{}, false
	}
	return rs[i], true
}

// traced keeps the instructions that lie in traced ranges.
func (rs Routines) traced(insns []uint64) []uint64 {
	var kept []uint64
	for _, pc := range insns {
		if r, ok := rs.Find(pc); ok && r.Traced {
			kept = append(kept, pc)
		}
	}
	return kept
}

// place names an address for people.
func (rs Routines) place(pc uint64) string {
	r, ok := rs.Find(pc)
	if !ok {
		return fmt.Sprintf("%x", pc)
	}
	return fmt.Sprintf("%x %s+%x", pc, r.Name, pc-r.Start)
}

// A Coverage says how much of a trace lies in traced routines.
type Coverage struct {
	Known  int      // instructions executed in listed ranges
	Traced int      // of these, in traced ones
	Missed []Missed // the rest, the largest first
}

// Missed is a routine that ran and was not traced.
type Missed struct {
	Routine Routine
	Insns   int
}

// Share is the traced part of what is known, from 0 to 1.
func (c Coverage) Share() float64 {
	if c.Known == 0 {
		return 1
	}
	return float64(c.Traced) / float64(c.Known)
}

// Cover measures how much of a trace lies in traced routines.
func Cover(trace *Trace, routines Routines) Coverage {
	var c Coverage
	missed := map[Routine]int{}
	for _, t := range trace.Threads {
		for _, pc := range t.Insns {
			r, ok := routines.Find(pc)
			if !ok {
				continue
			}
			c.Known++
			if r.Traced {
				c.Traced++
			} else {
				missed[r]++
			}
		}
	}
	for r, n := range missed {
		c.Missed = append(c.Missed, Missed{r, n})
	}
	slices.SortFunc(c.Missed, func(a, b Missed) int {
		return cmp.Or(cmp.Compare(b.Insns, a.Insns), cmp.Compare(a.Routine.Start, b.Routine.Start))
	})
	return c
}
