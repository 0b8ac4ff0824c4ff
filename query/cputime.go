package query

import (
	"cmp"
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

// A RoutineTime is the part of the CPU time that went to a routine.
type RoutineTime struct {
	Routine int // index in Snapshot.Routines
	Share   samples.Share
}

// A TimeReport says where the CPU time of a program went, by samples, while it was not slowed down
// by probes.
type TimeReport struct {
	Profile  *samples.Profile
	Samples  uint64        // all
	Parts    []TimePart    // that have any, by falling share
	Routines []RoutineTime // traced and left out, by falling share
}

// CPUTime sums up where the CPU time went; nil: the snapshot has no samples, or they were not read.
// It fails where they are damaged.
func CPUTime(s *wpp.Snapshot) (*TimeReport, error) {
	p, err := samples.Of(s)
	if p == nil || err != nil {
		return nil, err
	}
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
		own := uint64(0)
		for _, in := range f.Routines {
			share := samples.Share{Samples: in.Samples, Of: r.Samples}
			r.Routines = append(r.Routines, RoutineTime{in.Routine, share})
			if s.Routines[in.Routine].LeftOut == "" {
				own += in.Samples
			}
		}
		traced += own
		kind := FileTime
		if f.Image != samples.NoImage {
			kind = ImageTime
		}
		add(kind, path.Base(f.Path), f.Samples-own)
	}
	for i := range p.JIT {
		if m := &p.JIT[i]; strings.HasPrefix(m.Mapping, "[v") { // [vdso], [vsyscall]: the kernel's
			add(FileTime, m.Mapping, m.Samples)
		} else {
			inJIT += m.Samples
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
	return r, nil
}
