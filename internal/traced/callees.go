package traced

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"wpptrace/loader/cfg"
)

// Bounds are how much is traced of a program at most.
type Bounds struct {
	Blocks int
	// Hot is how many sites that are hit often there may be, by what samples let expect.
	Hot float64
}

// How many sites that are hit often a routine has, as was counted in servers of 500 and 800 traced
// routines: of one with samples, onceHit and eachSample for each of them, but no more than
// mostOfBlocks of its blocks have a site at all; of one without, without of its blocks.
const (
	onceHit, eachSample = 2, 4
	mostOfBlocks        = 0.4
	without             = 0.05
)

// hotSites is how many sites of a routine are hit often, by its samples.
func hotSites(r *cfg.Routine, samples uint64) float64 {
	blocks := float64(len(r.Blocks))
	if samples == 0 {
		return without * blocks
	}
	return min(mostOfBlocks*blocks, onceHit+eachSample*float64(samples))
}

// A growth is selected routines, which grow by those that they may call.
type growth struct {
	program *cfg.Program
	set     map[*cfg.Routine]bool
	list    []*cfg.Routine // in the order in which they were added
	closed  int            // of the list, those whose callees have been looked at
	blocks  int
	hot     float64
	samples map[*cfg.Routine]uint64
}

// A Choice is the routines of a program to trace.
type Choice struct {
	Routines map[*cfg.Routine]bool
	Sampled  int     // of them, with samples
	Hot      float64 // sites that are hit often, about
}

// WithCallees chooses routines with samples, those with the most first, and those that they call
// directly, that these call, and so on, as long as all have at most so many blocks: the one with
// the most samples is traced whatever its size. Half as many blocks may be in small routines that
// tables of the program point to, which are called by way of these, and as many in small callees of
// all: routines that run for a moment each time may be called often, and not be seen by samples.
// Where those with samples are more than the bounds allow the rest of them is left out, and small
// callees alone are added, within the bounds.
func WithCallees(c *cfg.Program, samples map[*cfg.Routine]uint64, most Bounds) Choice {
	const small, tiny = 40, 16 // blocks
	const ofSampled = 0.8      // of what may be hot
	// the one with the most samples, an interpreter's say, counts for no more, for the rest is to
	// have its share
	const ofFirst = 0.4
	s := &growth{program: c, samples: samples, set: map[*cfg.Routine]bool{}}
	for _, routine := range slices.SortedFunc(maps.Keys(samples), func(a, b *cfg.Routine) int {
		return cmp.Or(cmp.Compare(samples[b], samples[a]), cmp.Compare(a.ID, b.ID))
	}) {
		if len(s.list) == 0 {
			s.add(routine, Bounds{math.MaxInt, math.Inf(1)})
			s.hot = min(s.hot, ofFirst*most.Hot)
			s.blocks = min(s.blocks, int(ofFirst*float64(most.Blocks)))
			continue
		}
		s.add(routine, Bounds{most.Blocks, ofSampled * most.Hot})
	}
	sampled := len(s.list)
	if sampled == len(samples) {
		most.Hot = math.Inf(1)
		s.addCallees(math.MaxInt, most)
		most.Blocks = s.blocks + most.Blocks/2
	} else {
		s.addCallees(small, most)
	}
	s.addPointedTo(tiny, most)
	s.closed = 0 // what was too large then
	s.addCallees(small, most)
	return Choice{s.set, sampled, s.hot}
}

// add adds a routine, where all are within bounds then.
func (s *growth) add(routine *cfg.Routine, most Bounds) {
	blocks, hot := s.blocks+len(routine.Blocks), s.hot+hotSites(routine, s.samples[routine])
	if s.set[routine] || blocks > most.Blocks || hot > most.Hot {
		return
	}
	s.set[routine] = true
	s.list = append(s.list, routine)
	s.blocks, s.hot = blocks, hot
}

// addCallees adds direct callees that have at most largest blocks, first those of routines that
// were added first.
func (s *growth) addCallees(largest int, most Bounds) {
	for ; s.closed < len(s.list); s.closed++ {
		for i := range s.list[s.closed].Blocks {
			callee, _ := s.program.Callee(s.list[s.closed], i)
			if callee != nil && len(callee.Blocks) <= largest {
				s.add(callee, most)
			}
		}
	}
}

// addPointedTo adds routines of at most largest blocks that words of the program's data point to,
// those with the most of them first.
func (s *growth) addPointedTo(largest int, most Bounds) {
	pointers := map[*cfg.Routine]int{}
	for _, r := range s.program.Image.Relocations() {
		routine := s.program.Containing(r.To)
		if routine != nil && routine.Addr == r.To && len(routine.Blocks) <= largest {
			pointers[routine]++
		}
	}
	for _, routine := range slices.SortedFunc(maps.Keys(pointers), func(a, b *cfg.Routine) int {
		return cmp.Or(cmp.Compare(pointers[b], pointers[a]), cmp.Compare(a.ID, b.ID))
	}) {
		s.add(routine, most)
	}
}
