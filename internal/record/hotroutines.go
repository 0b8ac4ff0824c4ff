package record

import (
	"cmp"
	"maps"
	"math"
	"os"
	"slices"
	"time"

	"wpptrace/internal/traced"
	"wpptrace/loader/cfg"
	"wpptrace/loader/image"
	"wpptrace/loader/target"
)

// Where an image has more than fewBlocks, and at least leastSamples were in it while it was sampled
// for sampleTime, those of its routines are traced that samples were in, with those that they call,
// up to mostBlocks: to plan all others, and to put probes into them, takes longer than whoever
// waits for an answer has, and more of the budget than they are worth.
const (
	fewBlocks    = 10_000
	mostBlocks   = 4000
	leastSamples = 10
	sampleTime   = 1200 * time.Millisecond
)

// hotRoutines is the traced.Chooser that goes by where samples of a process are.
type hotRoutines struct {
	process  *target.Process
	sampling *sampling
	handle   func(Event)
}

// A sampledAddress is a link-time address with the samples that were there.
type sampledAddress struct{ addr, samples uint64 }

// samples are those in a file's image; nil: there are too few, or none are taken. It waits until
// the process has been sampled for sampleTime.
func (h *hotRoutines) samples(f *os.File, im *image.Image) (list []sampledAddress) {
	if h.sampling.err != nil {
		return nil
	}
	id, err := target.IDOf(f)
	if err != nil {
		return nil
	}
	h.process.Wait(time.Until(h.sampling.began.Add(sampleTime)))
	h.sampling.take()
	from, least := h.sampling.counts.Images[id], uint64(leastSamples)
	if traced.IsLarge(im) {
		least = 1 // all of it is no choice
	}
	if from == nil || from.Total() < least {
		return nil
	}
	for offset, n := range from.Offsets {
		if at, ok := im.Address(offset); ok {
			list = append(list, sampledAddress{at, n})
		}
	}
	return list
}

// Addresses are those that samples were at, with how many; none: there are too few samples.
func (h *hotRoutines) Addresses(f *os.File, im *image.Image) map[uint64]uint64 {
	at := map[uint64]uint64{}
	for _, s := range h.samples(f, im) {
		at[s.addr] += s.samples
	}
	return at
}

// Routines are those of a file to trace; nil: all, for it is small, or there are too few samples.
func (h *hotRoutines) Routines(f *os.File, c *cfg.Program) map[*cfg.Routine]bool {
	blocks := 0
	for _, routine := range c.Routines {
		blocks += len(routine.Blocks)
	}
	if blocks <= fewBlocks && !traced.IsLarge(c.Image) {
		return nil
	}
	list := h.samples(f, c.Image)
	if list == nil {
		return nil
	}
	samples, all := map[*cfg.Routine]uint64{}, uint64(0)
	for _, s := range list {
		if routine := c.Containing(s.addr); routine != nil {
			samples[routine] += s.samples
			all += s.samples
		}
	}
	hot := withCallees(c, samples, mostBlocks)
	h.handle(HotSelected{c.Image.Name, len(samples), len(hot), len(c.Routines), all})
	return hot
}

// A selection of routines grows by what those that are in it may call.
type selection struct {
	program *cfg.Program
	set     map[*cfg.Routine]bool
	list    []*cfg.Routine // in the order in which they were added
	closed  int            // of the list, those whose callees have been looked at
	blocks  int
}

// withCallees are routines with samples, and those that they call directly, that these call, and so
// on, as long as all have at most so many blocks: first those of routines with the most samples.
// Half as many blocks may be in small routines that tables of the program point to, which are
// called by way of these, and as many in small callees of all: routines that run for a moment each
// time may be called often, and not be seen by samples.
func withCallees(c *cfg.Program, samples map[*cfg.Routine]uint64,
	most int) map[*cfg.Routine]bool {
	const small, tiny = 40, 16 // blocks
	s := &selection{program: c, set: map[*cfg.Routine]bool{}}
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
func (s *selection) add(routine *cfg.Routine, largest, most int) {
	n := len(routine.Blocks)
	if s.set[routine] || n > largest || s.blocks+n > most {
		return
	}
	s.set[routine] = true
	s.list = append(s.list, routine)
	s.blocks += n
}

// addCallees adds direct callees, first those of routines that were added first.
func (s *selection) addCallees(largest, most int) {
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
func (s *selection) addPointedTo(largest, most int) {
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
