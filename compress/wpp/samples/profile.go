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
	m := &SamplesSection{PeriodNs: uint64(p.Period), CpuNs: uint64(p.CPUTime), Kernel: p.Kernel,
		Unknown: p.Unknown, Lost: p.Lost}
	for _, f := range p.Files {
		to := &SamplesSection_File{Path: []byte(f.Path), Samples: f.Samples,
			Image: uint32(f.Image + 1)}
		for _, r := range f.Routines {
			to.Routine = append(to.Routine, uint32(r.Routine))
			to.InRoutine = append(to.InRoutine, r.Samples)
		}
		m.File = append(m.File, to)
	}
	for _, u := range p.JIT {
		to := &SamplesSection_Memory{Mapping: []byte(u.Mapping), Samples: u.Samples}
		for _, name := range slices.Sorted(maps.Keys(u.Names)) {
			to.Name = append(to.Name, []byte(name))
			to.InName = append(to.InName, u.Names[name])
		}
		m.Memory = append(m.Memory, to)
	}
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil { // of a message without strings and required fields
		panic(err)
	}
	return wpp.NewSection(Kind, data)
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
		u := Memory{
			Mapping: string(from.Mapping),
			Samples: from.Samples,
			Names:   map[string]uint64{},
		}
		if len(from.Name) != len(from.InName) {
			return nil, fmt.Errorf("%d names have %d counts", len(from.Name), len(from.InName))
		}
		named := sums{}
		for i, name := range from.Name {
			named.add(from.InName[i])
			u.Names[string(name)] += from.InName[i]
		}
		if named.over(u.Samples) {
			return nil, fmt.Errorf("of %d samples more have names", u.Samples)
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
	return f, nil
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
