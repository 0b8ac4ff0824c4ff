package record

import (
	"os"
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
	hot := traced.WithCallees(c, samples, mostBlocks)
	h.handle(HotSelected{c.Image.Name, len(samples), len(hot), len(c.Routines), all})
	return hot
}
