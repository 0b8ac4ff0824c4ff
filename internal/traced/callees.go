package traced

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"wpptrace/loader/cfg"
)

// A growth is selected routines, which grow by those that they may call.
type growth struct {
	program *cfg.Program
	set     map[*cfg.Routine]bool
	list    []*cfg.Routine // in the order in which they were added
	closed  int            // of the list, those whose callees have been looked at
	blocks  int
}

// WithCallees are routines with samples, and those that they call directly, that these call, and so
// on, as long as all have at most so many blocks: first those of routines with the most samples.
// Half as many blocks may be in small routines that tables of the program point to, which are
// called by way of these, and as many in small callees of all: routines that run for a moment each
// time may be called often, and not be seen by samples.
func WithCallees(c *cfg.Program, samples map[*cfg.Routine]uint64,
	most int) map[*cfg.Routine]bool {
	const small, tiny = 40, 16 // blocks
	s := &growth{program: c, set: map[*cfg.Routine]bool{}}
	for _, routine := range slices.SortedFunc(maps.Keys(samples), func(a, b *cfg.Routine) int {
		return cmp.Or(cmp.Compare(samples[b], samples[a]), cmp.Compare(a.ID, b.ID))
	}) {
		s.add(routine, math.MaxInt, math.MaxInt)
	}
	s.addCallees(math.MaxInt, most)
	s.addPointedTo(tiny, s.blocks+most/2)
	s.closed = 0 // what was too large then
	s.addCallees(small, s.blocks+most/2)
	return s.set
}

// add adds a routine that has at most largest blocks, where all have at most so many then.
func (s *growth) add(routine *cfg.Routine, largest, most int) {
	n := len(routine.Blocks)
	if s.set[routine] || n > largest || s.blocks+n > most {
		return
	}
	s.set[routine] = true
	s.list = append(s.list, routine)
	s.blocks += n
}

// addCallees adds direct callees, first those of routines that were added first.
func (s *growth) addCallees(largest, most int) {
	for ; s.closed < len(s.list); s.closed++ {
		for i := range s.list[s.closed].Blocks {
			if callee, _ := s.program.Callee(s.list[s.closed], i); callee != nil {
				s.add(callee, largest, most)
			}
		}
	}
}

// addPointedTo adds routines that words of the program's data point to, those with the most of them
// first.
func (s *growth) addPointedTo(largest, most int) {
	pointers := map[*cfg.Routine]int{}
	for _, r := range s.program.Image.Relocations() {
		if routine := s.program.Containing(r.To); routine != nil && routine.Addr == r.To {
			pointers[routine]++
		}
	}
	for _, routine := range slices.SortedFunc(maps.Keys(pointers), func(a, b *cfg.Routine) int {
		return cmp.Or(cmp.Compare(pointers[b], pointers[a]), cmp.Compare(a.ID, b.ID))
	}) {
		s.add(routine, largest, most)
	}
}
