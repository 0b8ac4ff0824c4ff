package record

import (
	"os"
	"slices"
	"time"

	"wpptrace/internal/record/overhead"
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
	process   *target.Process
	sampling  *sampling
	libraries []string // globs of those that are to be traced
	share     float64
	limits    overhead.Limits
	handle    func(Event)

	chosen map[target.FileID]bool // images whose turn has come
	hot    float64                // sites of these that are hit often
}

func newHotRoutines(o *Options, s *sampling, handle func(Event)) *hotRoutines {
	return &hotRoutines{process: o.Process, sampling: s, libraries: o.Selection.Libraries,
		share: o.Overhead, limits: o.limits(), handle: handle, chosen: map[target.FileID]bool{}}
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

// Addresses are those that samples were at, with how many; none: there are too few samples. A
// routine with samples has sites that are hit often, so that the budget allows few.
func (h *hotRoutines) Addresses(f *os.File, im *image.Image) (at map[uint64]uint64, routines int) {
	const least = 3 // sites of a routine that are hit often
	at = map[uint64]uint64{}
	for _, s := range h.samples(f, im) {
		at[s.addr] += s.samples
	}
	return at, int(h.bounds(f).Hot) / least
}

// bounds are those for an image whose turn comes, which was sampled: what those before it have left
// is divided by the samples of all.
func (h *hotRoutines) bounds(f *os.File) traced.Bounds {
	counts := &h.sampling.counts
	load := float64(counts.CPUTime) / float64(max(counts.Wall, 1))
	hot := float64(overhead.MostHot(h.share, h.limits, max(load, hardly))) - h.hot
	share := 1.0
	if id, err := target.IDOf(f); err == nil {
		share = h.shareOf(id)
	}
	return traced.Bounds{Blocks: int(share * mostBlocks), Hot: share * max(hot, 0)}
}

// shareOf is which share of the samples in images to be traced are in one, those apart that have
// been chosen from.
func (h *hotRoutines) shareOf(id target.FileID) float64 {
	own, all := uint64(0), uint64(0)
	for other, i := range h.sampling.counts.Images {
		switch n := i.Total(); {
		case other == id:
			own, all = n, all+n
		case !h.chosen[other] && slices.ContainsFunc(h.libraries,
			func(glob string) bool { return traced.MatchesLibrary(glob, i.Name) }):
			all += n
		}
	}
	return float64(own) / float64(max(all, 1))
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
	hot := traced.WithCallees(c, samples, h.bounds(f))
	h.hot += hot.Hot
	if id, err := target.IDOf(f); err == nil {
		h.chosen[id] = true
	}
	h.handle(HotSelected{c.Image.Name, hot.Sampled, len(hot.Routines), len(c.Routines), all})
	return hot.Routines
}
