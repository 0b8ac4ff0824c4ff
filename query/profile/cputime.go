package profile

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strings"

	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/samples"
)

// A TimeKind says what a part of the CPU time went to.
type TimeKind string

// The kinds.
const (
	TracedTime  TimeKind = "traced"  // traced routines, of all images
	ImageTime   TimeKind = "image"   // other code of an image that routines are traced of
	FileTime    TimeKind = "file"    // a file of which nothing is traced
	KernelTime  TimeKind = "kernel"  // the kernel, on behalf of the program
	JITTime     TimeKind = "jit"     // code in no file
	UnknownTime TimeKind = "unknown" // it is not known what
)

// A TimePart is a part of the CPU time.
type TimePart struct {
	Kind  TimeKind
	Name  string // of an image or a file, without its directory; else ""
	Share samples.Share
}

// A RoutineTime is the part of the CPU time that went to a routine, without those that it calls.
type RoutineTime struct {
	Kind    TimeKind // TracedTime, ImageTime (it is left out), FileTime or JITTime
	Routine int      // index in Snapshot.Routines; NoRoutine: it is none of them
	Name    string   // NoRoutine: what its file calls it, or a just-in-time compiler
	File    string   // without its directory; JITTime: what the mapping is called, "" for nothing
	Share   samples.Share
}

// A TimeReport says where the CPU time of a program went, by samples, while it was not slowed down
// by probes.
type TimeReport struct {
	Profile  *samples.Profile
	Samples  uint64        // all
	Parts    []TimePart    // that have any, by falling share
	Routines []RoutineTime // those that are known, by falling share
}

// CPUTime sums up where the CPU time went; nil: the snapshot has no samples, or they were not read.
// It fails where they are damaged.
func CPUTime(s *wpp.Snapshot) (*TimeReport, error) {
	p, err := samples.Of(s)
	if p == nil || err != nil {
		return nil, err
	}
	return CPUTimeOf(p, s), nil
}

// CPUTimeOf sums up a profile, by the routines of a snapshot as far as it refers to any.
func CPUTimeOf(p *samples.Profile, s *wpp.Snapshot) *TimeReport {
	r := &TimeReport{Profile: p, Samples: p.Total()}
	add := func(kind TimeKind, name string, n uint64) {
		if n > 0 {
			r.Parts = append(
				r.Parts,
				TimePart{kind, name, samples.Share{Samples: n, Of: r.Samples}},
			)
		}
	}
	traced, inJIT := uint64(0), uint64(0)
	for i := range p.Files {
		f := &p.Files[i]
		name, own := path.Base(f.Path), r.addRoutines(s, f)
		traced += own
		kind := FileTime
		if f.Image != samples.NoImage {
			kind = ImageTime
		}
		add(kind, name, f.Samples-own)
	}
	for i := range p.JIT {
		if m := &p.JIT[i]; strings.HasPrefix(m.Mapping, "[v") { // [vdso], [vsyscall]: the kernel's
			add(FileTime, m.Mapping, m.Samples)
		} else {
			inJIT += m.Samples
			r.addNames(JITTime, m.Mapping, m.Names)
		}
	}
	add(TracedTime, "", traced)
	add(KernelTime, "", p.Kernel)
	add(JITTime, "", inJIT)
	add(UnknownTime, "", p.Unknown+p.Lost)
	slices.SortStableFunc(r.Parts, func(a, b TimePart) int {
		return cmp.Compare(b.Share.Samples, a.Share.Samples)
	})
	slices.SortStableFunc(r.Routines, func(a, b RoutineTime) int {
		return cmp.Compare(b.Share.Samples, a.Share.Samples)
	})
	return r
}

// addRoutines adds the routines of a file, and returns how many samples are in traced ones.
func (r *TimeReport) addRoutines(s *wpp.Snapshot, f *samples.File) (traced uint64) {
	name := path.Base(f.Path)
	for _, in := range f.Routines {
		kind := ImageTime
		if s.Routines[in.Routine].LeftOut == "" {
			kind = TracedTime
			traced += in.Samples
		}
		r.Routines = append(
			r.Routines,
			RoutineTime{kind, in.Routine, "", name, r.share(in.Samples)},
		)
	}
	r.addNames(FileTime, name, f.Names)
	return traced
}

// addNames adds the routines of a file, or of memory, that are known by their names.
func (r *TimeReport) addNames(kind TimeKind, file string, in map[string]uint64) {
	for _, name := range slices.Sorted(maps.Keys(in)) {
		r.Routines = append(r.Routines, RoutineTime{kind, NoRoutine, name, file, r.share(in[name])})
	}
}

func (r *TimeReport) share(
	n uint64,
) samples.Share {
	return samples.Share{Samples: n, Of: r.Samples}
}
