package merge

import (
	"bytes"
	"fmt"
	"math"
	"slices"

	"wpptrace/compress/ops"
	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/pathprofile"
	"wpptrace/internal/saturating"
	"wpptrace/query"
	"wpptrace/query/names"
)

// A Merger adds up snapshots. It belongs to one goroutine, and holds what is different in them,
// not what was added. After an error it is of no use.
type Merger struct {
	made   *wpp.Snapshot
	counts pathprofile.Counts
	shares shares

	routines []*routine // as in made
	byEntry  map[place]int
	marks    map[ops.Mark]uint32
	files    map[string]int
	calls    map[wpp.Call]int
}

// A place is where a routine begins. Where entries are not known, several have the same.
type place struct {
	image int
	entry uint64
	nth   int
}

// New returns a merger to which nothing was added.
func New() *Merger {
	return &Merger{byEntry: map[place]int{}, marks: map[ops.Mark]uint32{},
		files: map[string]int{}, calls: map[wpp.Call]int{}}
}

// Add adds a path profile, or the counts of a whole program path, which is only read. It fails
// where it is damaged, or where it is not known whether what it counts is the same. It takes time
// linear in the grammars and in the tables.
func (m *Merger) Add(s *wpp.Snapshot) (err error) {
	defer wpp.Recover(&err)
	counts, err := query.NewFrequencies(s)
	if err != nil {
		return err
	}
	if m.made == nil {
		m.made = &wpp.Snapshot{Machine: s.Machine, EachLine: s.EachLine}
	}
	if m.made.Machine != s.Machine {
		return fmt.Errorf("it is of another machine, %v, and not %v", s.Machine, m.made.Machine)
	}
	m.made.EachLine = m.made.EachLine && s.EachLine
	images, err := m.addImages(s)
	if err != nil {
		return err
	}
	routines, err := m.addRoutines(s, images)
	if err != nil {
		return err
	}
	symbols, err := m.addSymbols(s, routines)
	if err != nil {
		return err
	}
	for sym, to := range symbols {
		m.counts.Of[to] = saturating.Add(m.counts.Of[to], counts.Symbol(uint32(sym)))
	}
	return m.addFigures(s, counts.Threads)
}

// addFigures adds what was counted together, and at what cost.
func (m *Merger) addFigures(s *wpp.Snapshot, threads int) error {
	profile, err := pathprofile.Of(s)
	if err != nil {
		return err
	}
	runs := uint64(1)
	if profile != nil {
		runs = profile.Runs
	}
	m.counts.Threads = saturating.Add(m.counts.Threads, uint64(threads))
	isFirst := m.counts.Runs == 0
	m.counts.Runs = saturating.Add(m.counts.Runs, runs)
	m.shares.add(&s.Figures)
	joinFigures(&m.made.Figures, &s.Figures, isFirst)
	return nil
}

// addImages returns, for each image of a snapshot, the one that it is.
func (m *Merger) addImages(s *wpp.Snapshot) (images []int, err error) {
	before := len(m.made.Images)
	for i := range s.Images {
		im := &s.Images[i]
		at := slices.IndexFunc(m.made.Images[:before], func(x wpp.Image) bool {
			if len(im.BuildID) == 0 && len(x.BuildID) == 0 {
				return x.Base() == im.Base()
			}
			return bytes.Equal(x.BuildID, im.BuildID)
		})
		switch {
		case at >= 0 && len(im.BuildID) == 0:
			return nil, fmt.Errorf("%s has no build id, so that nothing says whether its paths "+
				"are those of the files before: link it with --build-id and record again",
				names.Printable(im.Base()))
		case at < 0:
			at = len(m.made.Images)
			m.made.Images = append(m.made.Images, *im)
		}
		images = append(images, at)
	}
	return images, nil
}

// addRoutines returns, for each routine of a snapshot, the one that it is.
func (m *Merger) addRoutines(s *wpp.Snapshot, images []int) (list []int, err error) {
	met := map[place]int{}
	for i := range s.Routines {
		r := &s.Routines[i]
		p := place{images[r.Image], r.Entry, 0}
		met[p]++
		p.nth = met[p]
		at, known := m.byEntry[p]
		if !known {
			at = len(m.made.Routines)
			m.byEntry[p] = at
			added := *r
			added.Image, added.Blocks, added.Paths = images[r.Image], nil, 0
			m.made.Routines = append(m.made.Routines, added)
			m.routines = append(m.routines, newRoutine())
		}
		to := &m.made.Routines[at]
		if !slices.Equal(to.Ranges, r.Ranges) {
			return nil, m.otherwise(s, r, "lies elsewhere")
		}
		if r.LeftOut == "" {
			to.LeftOut = "" // it was traced in one of them
		}
		if err := m.addBlocks(s, r, at); err != nil {
			return nil, err
		}
		list = append(list, at)
	}
	return list, nil
}

// otherwise is the error of a routine that is the same by its build id and its entry, and is not.
func (m *Merger) otherwise(s *wpp.Snapshot, r *wpp.Routine, how string) error {
	return fmt.Errorf("%s of %s %s, though the build id is the same: one of the files was recorded "+
		"by another version of wpptrace (%s, %s): record again with one", names.Plain(r),
		names.Printable(s.Images[r.Image].Base()), how,
		names.Printable(m.made.Figures.Tool), names.Printable(s.Figures.Tool))
}

// addBlocks gives a routine its blocks, if it has none yet.
func (m *Merger) addBlocks(s *wpp.Snapshot, r *wpp.Routine, at int) error {
	to, x := &m.made.Routines[at], m.routines[at]
	x.blocks = nil
	if len(r.Blocks) == 0 {
		return nil
	}
	if len(to.Blocks) == 0 {
		for i := range r.Blocks {
			b := r.Blocks[i]
			b.File = m.file(s, b.File, b.Line)
			b.Spans = slices.Clone(b.Spans)
			for k := range b.Spans {
				span := &b.Spans[k]
				span.File, span.Call = m.file(s, span.File, span.Line), m.call(s, span.Call)
			}
			to.Blocks = append(to.Blocks, b)
		}
	}
	for i := range r.Blocks {
		b := &r.Blocks[i]
		isSame := func(y wpp.Block) bool {
			return y.Addr == b.Addr && bytes.Equal(y.Lengths, b.Lengths)
		}
		k := i
		if k >= len(to.Blocks) || !isSame(to.Blocks[k]) {
			k = slices.IndexFunc(to.Blocks, isSame)
		}
		if k < 0 {
			return m.otherwise(s, r, fmt.Sprintf("has other blocks, as at %x", b.Addr))
		}
		x.blocks = append(x.blocks, k)
	}
	return nil
}

// file is the number of a source file.
func (m *Merger) file(s *wpp.Snapshot, file, line int) int {
	if line == 0 {
		return 0
	}
	name := s.Files[file]
	at, known := m.files[name]
	if !known {
		at = len(m.made.Files)
		m.files[name] = at
		m.made.Files = append(m.made.Files, name)
	}
	return at
}

// call is the number of an inlined call.
func (m *Merger) call(s *wpp.Snapshot, call int) int {
	if call == 0 {
		return 0
	}
	c := s.Calls[call-1]
	c.File, c.In = m.file(s, c.File, c.Line), m.call(s, c.In)
	at, known := m.calls[c]
	if !known {
		m.made.Calls = append(m.made.Calls, c)
		at = len(m.made.Calls)
		m.calls[c] = at
	}
	return at
}

// Snapshot returns the path profile of all that was added; it stays the merger's own. It has no
// samples of the CPU time. Its command is that of all runs, where it is the same; its duration and
// its CPU time are those of all together.
func (m *Merger) Snapshot() *wpp.Snapshot {
	if m.made == nil {
		m.made = &wpp.Snapshot{}
	}
	m.shares.set(&m.made.Figures)
	m.made.Sections = []*wpp.Section{m.counts.Section()}
	return m.made
}

// Paths is how many different paths came up.
func (m *Merger) Paths() int {
	if m.made == nil {
		return 0
	}
	return len(m.made.Symbols) - len(m.marks)
}

// Runs is how many processes were counted.
func (m *Merger) Runs() uint64 { return m.counts.Runs }

// shares are the shares of the CPU time that were traced, of several recordings.
type shares struct {
	isSampled    bool
	unknown      bool // of one of them it is not known
	least, most  float64
	weighed, cpu float64
	any          bool
}

func (x *shares) add(f *wpp.Figures) {
	value, least, most := 1.0, 1.0, 1.0
	if f.IsSampled() {
		x.isSampled = true
		value, least, most = f.Sampled, f.SampledLeast, f.SampledMost
		if most == 0 { // of an old file
			least, most = value, value
		}
		x.unknown = x.unknown || !f.IsShareKnown()
	}
	if !x.any {
		x.least, x.most = least, most
	}
	x.any = true
	x.least, x.most = min(x.least, least), max(x.most, most)
	time := max(float64(f.CPUTime), 1)
	x.weighed, x.cpu = x.weighed+value*time, x.cpu+time
}

// set sets the share of all of them, which lies between that of the least and that of the most.
func (x *shares) set(f *wpp.Figures) {
	if !x.isSampled {
		f.Sampled, f.SampledLeast, f.SampledMost = 0, 0, 0
		return
	}
	f.Sampled, f.SampledLeast, f.SampledMost = x.weighed/x.cpu, x.least, x.most
	if x.unknown {
		f.SampledLeast = 0
	}
	if f.Sampled >= 1 { // not all of it was traced
		f.Sampled = math.Nextafter(1, 0)
	}
}

// joinFigures adds up figures. Those that are of one recording alone are not known of several.
func joinFigures(to, from *wpp.Figures, isFirst bool) {
	if isFirst {
		*to = *from
		return
	}
	if !slices.Equal(to.Command, from.Command) {
		to.Command = nil
	}
	if to.PID != from.PID {
		to.PID = 0
	}
	if to.Kernel != from.Kernel {
		to.Kernel = ""
	}
	if to.Ended != from.Ended {
		to.Ended = ""
	}
	if to.Tool != from.Tool {
		to.Tool = ""
	}
	if from.Start.Before(to.Start) {
		to.Start = from.Start
	}
	to.WaitStatus = nil
	to.Duration += from.Duration
	to.HeldUp = max(to.HeldUp, from.HeldUp)
	to.CPUTime += from.CPUTime
	for _, x := range []struct {
		to   *uint64
		from uint64
	}{
		{&to.Hits, from.Hits}, {&to.HitsSingleStep, from.HitsSingleStep},
		{&to.Events, from.Events}, {&to.Lost, from.Lost}, {&to.Gaps, from.Gaps},
		{&to.Anomalies, from.Anomalies}, {&to.Windows, from.Windows},
	} {
		*x.to = saturating.Add(*x.to, x.from)
	}
	to.Probes, to.ProbesSingleStep = max(to.Probes, from.Probes), max(to.ProbesSingleStep,
		from.ProbesSingleStep)
	to.HitTime, to.ReportTime = 0, 0
	to.SlowDown, to.SlowDownVague, to.SlowDownMost, to.SlowDownLikely = 0, false, 0, 0
}
