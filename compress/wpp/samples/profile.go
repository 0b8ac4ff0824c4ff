package samples

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"wpptrace/compress/wpp"
)

// Kind is that of the section.
const Kind = wpp.FirstSection

// A Profile says where the CPU time went. All numbers are of samples.
type Profile struct {
	Period  time.Duration // of CPU time, between two samples, about
	CPUTime time.Duration // that the process used while it was sampled
	Wall    time.Duration // how long it was sampled; 0: not known

	Kernel  uint64
	Files   []File   // by falling samples
	JIT     []Memory // by falling samples
	Unknown uint64   // where nothing was mapped any more when it was looked up
	Lost    uint64   // there was no room to count them
}

// A File is one that code of was run.
type File struct {
	Path     string // in the process's own mount namespace
	Image    int    // index in Snapshot.Images; NoImage: it is none of them
	Samples  uint64 // all, those in no routine too
	Routines []InRoutine
	// of a file that is no image of the snapshot: samples in routines whose names are known
	Names map[string]uint64
}

// NoImage is the index of what is no image of the snapshot.
const NoImage = -1

// An InRoutine is samples in a routine of the snapshot.
type InRoutine struct {
	Routine int // index in Snapshot.Routines
	Samples uint64
}

// A Memory is code in no file, as a just-in-time compiler makes it.
type Memory struct {
	Mapping string // what the kernel calls it; "": it has no name
	Samples uint64
	Names   map[string]uint64 // samples in routines whose names are known
}

// Total is how many samples there are.
func (p *Profile) Total() uint64 {
	n := p.Kernel + p.Unknown + p.Lost
	for i := range p.Files {
		n += p.Files[i].Samples
	}
	for i := range p.JIT {
		n += p.JIT[i].Samples
	}
	return n
}

// Section is the profile as a section of a snapshot.
func (p *Profile) Section() *wpp.Section {
	m := &SamplesSection{PeriodNs: uint64(p.Period), CpuNs: uint64(p.CPUTime),
		WallNs: uint64(p.Wall), Kernel: p.Kernel, Unknown: p.Unknown, Lost: p.Lost}
	for _, f := range p.Files {
		to := &SamplesSection_File{Path: []byte(f.Path), Samples: f.Samples,
			Image: uint32(f.Image + 1)}
		for _, r := range f.Routines {
			to.Routine = append(to.Routine, uint32(r.Routine))
			to.InRoutine = append(to.InRoutine, r.Samples)
		}
		to.Name, to.InName = columns(f.Names)
		m.File = append(m.File, to)
	}
	for _, u := range p.JIT {
		to := &SamplesSection_Memory{Mapping: []byte(u.Mapping), Samples: u.Samples}
		to.Name, to.InName = columns(u.Names)
		m.Memory = append(m.Memory, to)
	}
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil { // of a message without strings and required fields
		panic(err)
	}
	return wpp.NewSection(Kind, data)
}

// columns are samples by name as two lists.
func columns(names map[string]uint64) (list [][]byte, n []uint64) {
	for _, name := range slices.Sorted(maps.Keys(names)) {
		list, n = append(list, []byte(name)), append(n, names[name])
	}
	return list, n
}

// namesOf are two lists as samples by name, of so many samples; nil: there are none.
func namesOf(list [][]byte, n []uint64, of uint64) (map[string]uint64, error) {
	if len(list) != len(n) {
		return nil, fmt.Errorf("%d names have %d counts", len(list), len(n))
	}
	if len(list) == 0 {
		return nil, nil
	}
	names, sum := map[string]uint64{}, sums{}
	for i, name := range list {
		sum.add(n[i])
		names[string(name)] += n[i]
	}
	if sum.over(of) {
		return nil, fmt.Errorf("of %d samples more have names", of)
	}
	return names, nil
}

// Of is the profile of a snapshot that was read with Kind as a known one; nil: it has none. It
// fails where the section is damaged.
func Of(s *wpp.Snapshot) (*Profile, error) {
	for section := range s.SectionsOf(Kind) {
		p, err := decode(section, s)
		if err != nil {
			return nil, fmt.Errorf("read the section of samples: %w", err)
		}
		return p, nil
	}
	return nil, nil
}

func decode(section *wpp.Section, s *wpp.Snapshot) (*Profile, error) {
	data, err := section.Data()
	if err != nil {
		return nil, err
	}
	m := &SamplesSection{}
	if err := proto.Unmarshal(data, m); err != nil {
		return nil, err
	}
	p := &Profile{Kernel: m.Kernel, Unknown: m.Unknown, Lost: m.Lost}
	sum := sums{}
	if p.Period, err = durationOf(m.PeriodNs); err != nil {
		return nil, err
	}
	if p.CPUTime, err = durationOf(m.CpuNs); err != nil {
		return nil, err
	}
	if p.Wall, err = durationOf(m.WallNs); err != nil {
		return nil, err
	}
	sum.add(p.Kernel, p.Unknown, p.Lost)
	for _, from := range m.File {
		f, err := fileOf(from, s)
		if err != nil {
			return nil, err
		}
		sum.add(f.Samples)
		p.Files = append(p.Files, f)
	}
	for _, from := range m.Memory {
		u := Memory{Mapping: string(from.Mapping), Samples: from.Samples}
		if u.Names, err = namesOf(from.Name, from.InName, u.Samples); err != nil {
			return nil, err
		}
		sum.add(u.Samples)
		p.JIT = append(p.JIT, u)
	}
	if sum.over(math.MaxInt64) {
		return nil, fmt.Errorf("there are too many samples")
	}
	slices.SortStableFunc(p.Files, func(a, b File) int { return cmp.Compare(b.Samples, a.Samples) })
	slices.SortStableFunc(p.JIT, func(a, b Memory) int { return cmp.Compare(b.Samples, a.Samples) })
	return p, nil
}

func fileOf(from *SamplesSection_File, s *wpp.Snapshot) (File, error) {
	f := File{Path: string(from.Path), Image: int(from.Image) - 1, Samples: from.Samples}
	switch {
	case f.Image >= len(s.Images):
		return f, fmt.Errorf("image %d is none of %d", f.Image, len(s.Images))
	case len(from.Routine) != len(from.InRoutine):
		return f, fmt.Errorf("%d routines have %d counts", len(from.Routine), len(from.InRoutine))
	}
	in := sums{}
	for i, r := range from.Routine {
		if int(r) >= len(s.Routines) || s.Routines[r].Image != f.Image {
			return f, fmt.Errorf("routine %d is none of image %d", r, f.Image)
		}
		in.add(from.InRoutine[i])
		f.Routines = append(f.Routines, InRoutine{int(r), from.InRoutine[i]})
	}
	if in.over(f.Samples) {
		return f, fmt.Errorf("of %d samples of a file more are in its routines", f.Samples)
	}
	var err error
	f.Names, err = namesOf(from.Name, from.InName, f.Samples)
	return f, err
}

// sums adds up numbers, and notes where the sum is beyond all bounds.
type sums struct {
	n        uint64
	overflow bool
}

func (s *sums) add(list ...uint64) {
	for _, n := range list {
		if s.n+n < s.n {
			s.overflow = true
		}
		s.n += n
	}
}

func (s *sums) over(most uint64) bool { return s.overflow || s.n > most }

func durationOf(ns uint64) (time.Duration, error) {
	if ns > math.MaxInt64 {
		return 0, fmt.Errorf("%d ns is too long", ns)
	}
	return time.Duration(ns), nil
}
