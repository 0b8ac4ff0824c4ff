package record

import (
	"cmp"
	"errors"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"wpptrace/compress/wpp/samples"
	"wpptrace/internal/record/sample"
	"wpptrace/loader/image"
	"wpptrace/loader/plan"
	"wpptrace/loader/target"
)

// samplePause is how often samples are taken out of the kernel.
const samplePause = time.Second

// A sampling counts where the CPU time of a process goes while no probes slow it down. nil: it is
// not sampled.
type sampling struct {
	sampler *sample.Sampler
	counts  sample.Counts
	log     *slog.Logger
	files   map[target.FileID]*sampledFile
	began   time.Time
	next    time.Time // that samples are taken out of the kernel
	paused  bool
	err     error // that ended it
	hot     hottest
}

// A hottest is the routine of a plan that the most samples are in, and how many they are, as far as
// they were when there were so many in all.
type hottest struct {
	routine *plan.Routine // nil: there are none
	share   samples.Share
}

// A sampledFile is one that samples were in the code of. It is opened when it comes up, as far as
// wpptrace still may then, and read if there are enough of them.
type sampledFile struct {
	file      *os.File // nil: it cannot be opened
	functions func() *image.Functions
}

// mostFiles is how many files are opened.
const mostFiles = 64

var errStopped = errors.New("sampling is over")

// beginSampling begins to sample a process; where that cannot be, nothing else fails for it. One
// that begins and will be traced all the time is not sampled: probes slow it down all the time. Nor
// is one of several that are recorded at the same time: each takes clocks of its own, which
// interrupt all others too.
func beginSampling(o *Options, handle func(Event)) *sampling {
	_, one := o.Shared.(alone)
	begins := o.Child != nil || o.Stands
	if !one || begins && o.Overhead == 0 || len(o.Threads) > 0 {
		return nil
	}
	s, err := sample.Start(o.Process, sample.Options{Used: o.used})
	if err != nil {
		if o.Process.Alive() {
			handle(NotSampled{err})
		}
		return nil
	}
	return newSampling(s, o.Log)
}

func newSampling(s *sample.Sampler, log *slog.Logger) *sampling {
	return &sampling{sampler: s, log: log, files: map[target.FileID]*sampledFile{},
		began: time.Now(), next: time.Now().Add(samplePause)}
}

// pause has nothing counted until resume: probes slow the process down, and what that takes would
// count as its own.
func (s *sampling) pause() {
	if s != nil && s.err == nil {
		s.paused = true
		s.end(s.sampler.Pause())
	}
}

func (s *sampling) resume() {
	if s != nil && s.err == nil {
		s.paused = false
		s.end(s.sampler.Resume())
	}
}

// keep takes samples out of the kernel, if it is time. It takes none during a pause: a window may
// be open then, and to take them can block for long.
func (s *sampling) keep() {
	if s != nil && !s.paused && time.Now().After(s.next) {
		s.take()
	}
}

func (s *sampling) take() {
	if s == nil || s.err != nil {
		return
	}
	s.next = time.Now().Add(samplePause)
	c, err := s.sampler.Take()
	if err != nil {
		s.end(err)
		return
	}
	s.counts.Add(c)
	for id, i := range c.Images {
		if s.files[id] == nil && len(s.files) < mostFiles {
			f, _ := s.sampler.Open(id) // without it, its routines have no names
			s.files[id] = newSampledFile(f, i.Name)
		}
	}
}

func newSampledFile(f *os.File, name string) *sampledFile {
	return &sampledFile{f, sync.OnceValue(func() *image.Functions {
		if f == nil {
			return nil
		}
		st, err := f.Stat()
		if err != nil {
			return nil
		}
		functions, err := image.ReadFunctions(f, st.Size(), name)
		if err != nil {
			return nil
		}
		return functions
	})}
}

// end ends sampling after an error, and nothing interrupts the process any more; nil: it goes on.
// What was counted up to then stays.
func (s *sampling) end(err error) {
	if s.err = err; err != nil {
		s.log.Warn("sampling is over", "why", err)
		s.sampler.Close()
	}
}

// stop ends sampling. What was counted stays.
func (s *sampling) stop() {
	if s != nil {
		s.err = cmp.Or(s.err, errStopped)
		s.sampler.Close()
	}
}

// close frees everything: there is no profile any more.
func (s *sampling) close() {
	if s == nil {
		return
	}
	s.stop()
	for _, f := range s.files {
		f.file.Close()
	}
}

// profile sums up what was counted by what a plan knows, whose parts are of those files; nil: there
// were no samples.
func (s *sampling) profile(pl *plan.Plan, files []target.FileID) *samples.Profile {
	if s == nil || s.counts.Total() == 0 {
		return nil
	}
	return s.sum(pl, files)
}

// sum is profile, though there were no samples.
func (s *sampling) sum(pl *plan.Plan, files []target.FileID) *samples.Profile {
	c := &s.counts
	p := &samples.Profile{Period: c.Period, CPUTime: c.CPUTime, Wall: c.Wall, Kernel: c.Kernel,
		Unknown: c.Unknown, Lost: c.Lost}
	const many = 500 // one of so many is worth to look up
	for id, from := range c.Images {
		f := samples.File{Path: from.Name, Image: slices.Index(files, id), Samples: from.Total()}
		if f.Image >= 0 {
			f.Routines = inRoutines(from, pl, &pl.Parts[f.Image])
		} else {
			f.Image = samples.NoImage
			if f.Samples >= c.Total()/many {
				f.Names = s.names(id, from)
			}
		}
		p.Files = append(p.Files, f)
	}
	for mapping, from := range c.JIT {
		p.JIT = append(p.JIT, samples.Memory{Mapping: mapping, Samples: from.Samples,
			Names: maps.Clone(from.Names)})
	}
	slices.SortFunc(p.Files, func(a, b samples.File) int {
		return cmp.Or(cmp.Compare(b.Samples, a.Samples), cmp.Compare(a.Path, b.Path))
	})
	slices.SortFunc(p.JIT, func(a, b samples.Memory) int {
		return cmp.Or(cmp.Compare(b.Samples, a.Samples), cmp.Compare(a.Mapping, b.Mapping))
	})
	return p
}

// names are the samples of an image by what its file calls the routines; nil: that is not known.
func (s *sampling) names(id target.FileID, i *sample.Image) map[string]uint64 {
	f := s.files[id]
	if f == nil || f.functions() == nil {
		return nil
	}
	by := sample.Sum(i, f.functions().At)
	delete(by, "")
	if len(by) == 0 {
		return nil
	}
	return by
}

// traced is the share of the CPU time that goes to traced routines; of no samples: it is not known.
func (s *sampling) traced(pl *plan.Plan, files []target.FileID) samples.Share {
	if s == nil {
		return samples.Share{}
	}
	share := samples.Share{Of: s.counts.Total()}
	for routine, n := range s.routines(pl, files) {
		if pl.Routines[routine].Traced() {
			share.Samples += n
		}
	}
	return share
}

// routines are the samples by routine of a plan.
func (s *sampling) routines(pl *plan.Plan, files []target.FileID) map[int]uint64 {
	by := map[int]uint64{}
	if s == nil {
		return by
	}
	for i, id := range files {
		if from := s.counts.Images[id]; from != nil {
			for _, in := range inRoutines(from, pl, &pl.Parts[i]) {
				by[in.Routine] += in.Samples
			}
		}
	}
	return by
}

// hottest is the routine of a plan that the most samples are in, with its share of the CPU time;
// false: none are in any. Cost: some 100 us, once after each take.
func (s *sampling) hottest(pl *plan.Plan, files []target.FileID) (hottest, bool) {
	if s == nil {
		return hottest{}, false
	}
	if total := s.counts.Total(); total != s.hot.share.Of {
		s.hot = hottest{share: samples.Share{Of: total}}
		for i, id := range files {
			from := s.counts.Images[id]
			if from == nil {
				continue
			}
			list := inRoutines(from, pl, &pl.Parts[i])
			if len(list) > 0 && list[0].Samples > s.hot.share.Samples {
				s.hot.routine = pl.Routines[list[0].Routine]
				s.hot.share.Samples = list[0].Samples
			}
		}
	}
	return s.hot, s.hot.routine != nil
}

// inRoutines are the samples of an image by routine of its part of a plan.
func inRoutines(i *sample.Image, pl *plan.Plan, part *plan.Part) (list []samples.InRoutine) {
	const none = -1
	by := sample.Sum(i, func(offset uint64) int {
		at, ok := part.Program.Image.Address(offset)
		if !ok {
			return none
		}
		if r := pl.Containing(at + part.Offset); r != nil {
			return r.ID
		}
		return none
	})
	delete(by, none)
	for routine, n := range by {
		list = append(list, samples.InRoutine{Routine: routine, Samples: n})
	}
	slices.SortFunc(list, func(a, b samples.InRoutine) int {
		return cmp.Or(cmp.Compare(b.Samples, a.Samples), cmp.Compare(a.Routine, b.Routine))
	})
	return list
}
