package record

import (
	"os"
	"time"

	"wpptrace/internal/record/overhead"
	"wpptrace/internal/record/sample"
	"wpptrace/internal/traced"
	"wpptrace/loader/cfg"
	"wpptrace/loader/image"
	"wpptrace/loader/target"
)

// Where an image has more than fewBlocks, and at least leastSamples were in it while it was sampled
// for sampleTime, those of its routines are traced that most samples were in, with those that they
// call, up to mostBlocks, and to as many sites that are hit often as the budget allows windows
// with: to plan all others, and to put probes into them, takes longer than whoever waits for an
// answer has, and more of the budget than they are worth.
const (
	fewBlocks    = 10_000
	mostBlocks   = 4000
	leastSamples = 10
	sampleTime   = 1200 * time.Millisecond
)

// hotRoutines is the traced.Chooser that goes by where samples of a process are, and by what a
// budget of a share allows.
type hotRoutines struct {
	options  *Options
	sampling *sampling
	handle   func(Event)

	chosen map[target.FileID]bool // images whose turn has come
	hot    float64                // sites of these that are hit often
}

func newHotRoutines(o *Options, s *sampling, handle func(Event)) *hotRoutines {
	return &hotRoutines{options: o, sampling: s, handle: handle, chosen: map[target.FileID]bool{}}
}

// samples are those in a file's image, by link-time address; none: there are too few, or none are
// taken. It waits until the process has been sampled for sampleTime.
func (h *hotRoutines) samples(f *os.File, im *image.Image) (at map[uint64]uint64) {
	if h.sampling.err != nil {
		return nil
	}
	id, err := target.IDOf(f)
	if err != nil {
		return nil
	}
	h.options.Process.Wait(time.Until(h.sampling.began.Add(sampleTime)))
	h.sampling.take()
	from, least := h.sampling.counts.Images[id], uint64(leastSamples)
	if traced.IsLarge(im) {
		least = 1 // all of it is no choice
	}
	if from == nil || from.Total() < least {
		return nil
	}
	at = map[uint64]uint64{}
	for offset, n := range from.Offsets {
		if addr, ok := im.Address(offset); ok {
			at[addr] += n
		}
	}
	return at
}

// Addresses are those that samples were at, with how many; none: there are too few samples. A
// routine with samples has sites that are hit often, so that the budget allows few.
func (h *hotRoutines) Addresses(f *os.File, im *image.Image) (at map[uint64]uint64, routines int) {
	const least = 3 // sites of a routine that are hit often
	return h.samples(f, im), int(h.bounds(f).Hot) / least
}

// bounds are those for an image whose turn comes, which was sampled: what those before it have left
// is divided by the samples of all.
func (h *hotRoutines) bounds(f *os.File) traced.Bounds {
	counts := &h.sampling.counts
	load := float64(counts.CPUTime) / float64(max(counts.Wall, 1))
	hot := float64(overhead.MostHot(h.options.Overhead, h.options.limits(),
		max(load, hardly))) - h.hot
	id, _ := target.IDOf(f) // without it there are no samples
	share := counts.ShareOf(id, func(other target.FileID, i *sample.Image) bool {
		return !h.chosen[other] && h.options.Selection.Wants(i.Name)
	})
	return traced.Bounds{Blocks: int(share * mostBlocks), Hot: share * max(hot, 0)}
}

// Routines are those of a file to trace; nil: all, for it is small, or there are too few samples.
func (h *hotRoutines) Routines(f *os.File, c *cfg.Program) map[*cfg.Routine]bool {
	blocks := 0
	for _, routine := range c.Routines {
		blocks += len(routine.Blocks)
	}
	if blocks <= fewBlocks && !traced.MayBePart(c.Image) {
		return nil
	}
	at := h.samples(f, c.Image)
	if len(at) == 0 {
		return nil
	}
	samples, all := map[*cfg.Routine]uint64{}, uint64(0)
	for addr, n := range at {
		if routine := c.Containing(addr); routine != nil {
			samples[routine] += n
			all += n
		}
	}
	hot := traced.WithCallees(c, samples, h.bounds(f))
	h.hot += hot.Hot
	id, _ := target.IDOf(f)
	h.chosen[id] = true
	h.handle(HotSelected{c.Image.Name, hot.Sampled, len(hot.Routines), len(c.Routines), all,
		len(c.Outside) > 0})
	return hot.Routines
}
