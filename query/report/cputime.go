package report

import (
	"bufio"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/samples"
	"wpptrace/internal/text"
	"wpptrace/query/names"
	"wpptrace/query/profile"
)

// TimeJSON is where the CPU time of the program went, by samples that were taken while it was not
// slowed down by probes. Shares are fractions of 1.
type TimeJSON struct {
	Samples  uint64            `json:"samples"`   // all
	PeriodNS int64             `json:"period_ns"` // of CPU time, between two samples, about
	CPUNS    int64             `json:"cpu_ns"`    // that the process used while it was sampled
	WallNS   int64             `json:"wall_ns"`   // how long that was
	Parts    []TimePartJSON    `json:"parts"`     // the largest first; their shares add up to 1
	Routines []RoutineTimeJSON `json:"routines"`  // those that are known, the largest first
}

// TimePartJSON is a part of the CPU time.
type TimePartJSON struct {
	// traced: traced routines; image: other code of a file that routines are traced of; file: one
	// that none are traced of; kernel; jit: code in no file; unknown
	Kind profile.TimeKind `json:"kind"`
	// of the file; null where there is none
	Name    *string `json:"name"`
	Samples uint64  `json:"samples"` // that are of it
	Share   float64 `json:"share"`   // of all samples
	// of the interval that its share of the CPU time is in, 95 times of 100
	Least float64 `json:"least"`
	Most  float64 `json:"most"` // of the same
}

// RoutineTimeJSON is the part of the CPU time that went to a routine, without those that it calls.
type RoutineTimeJSON struct {
	// traced; image: of a file that others are traced of; file: of one that none are traced of; jit
	Kind profile.TimeKind `json:"kind"`
	// of traced and image: a name that no other routine of the snapshot has
	Routine string `json:"routine"`
	// that has it; of jit, what the mapping is called; null where that has no name
	File    *string `json:"file"`
	Samples uint64  `json:"samples"` // that are in it
	Share   float64 `json:"share"`   // of all samples
	// of the interval that its share of the CPU time is in, 95 times of 100
	Least float64 `json:"least"`
	Most  float64 `json:"most"` // of the same
}

// timeJSON is the CPU time of a snapshot; nil: it is not known.
func timeJSON(s *wpp.Snapshot) (*TimeJSON, error) {
	r, err := profile.CPUTime(s)
	if r == nil || err != nil {
		return nil, err
	}
	t := &TimeJSON{
		r.Samples,
		int64(r.Profile.Period),
		int64(r.Profile.CPUTime),
		int64(r.Profile.Wall),
		[]TimePartJSON{},
		[]RoutineTimeJSON{},
	}
	for _, p := range r.Parts {
		lo, hi := p.Share.Interval()
		t.Parts = append(t.Parts, TimePartJSON{p.Kind, known(p.Name, ""),
			p.Share.Samples, p.Share.Value(), lo, hi})
	}
	called := names.Of(s)
	for _, p := range r.Routines {
		lo, hi := p.Share.Interval()
		name := p.Name
		if p.Routine != profile.NoRoutine {
			name = called.Routine(p.Routine)
		}
		t.Routines = append(t.Routines, RoutineTimeJSON{p.Kind, name, known(p.File, ""),
			p.Share.Samples, p.Share.Value(), lo, hi})
	}
	return t, nil
}

// writeTime writes the line that says where the CPU time went, if that is known.
func writeTime(out *bufio.Writer, s *wpp.Snapshot) {
	r, err := profile.CPUTime(s)
	if err != nil {
		fmt.Fprintf(out, "CPU time: not known: %v\n", err)
	} else if r != nil {
		fmt.Fprintln(out, "CPU time: "+TimeText(r))
	}
}

// TimeText says where the CPU time went: the largest parts, and the rest together.
func TimeText(r *profile.TimeReport) string {
	if r.Samples == 0 {
		return "no samples"
	}
	const (
		most  = 5 // parts
		least = 0.005
		width = 24 // of a name
	)
	var list []string
	rest := samples.Share{Of: r.Samples}
	for i, p := range r.Parts {
		if i >= most || p.Share.Value() < least {
			rest.Samples += p.Share.Samples
			continue
		}
		name := names.ShortenMiddle(names.Printable(p.Name), width)
		list = append(list, percentOf(p.Share)+" "+partName(p.Kind, name))
	}
	if rest.Samples > 0 {
		list = append(list, percentOf(rest)+" other")
	}
	cpus := ""
	if p := r.Profile; p.Wall > 0 {
		cpus = fmt.Sprintf("; %.2g CPUs busy", float64(p.CPUTime)/float64(p.Wall))
	}
	return fmt.Sprintf("%s (%s%s)", strings.Join(list, ", "), text.Count(r.Samples, "sample"), cpus)
}

// interpreters are by the names of their programs and libraries.
var interpreters = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(lib)?(python|perl|ruby|php|lua|tcl)[-0-9.]*(\.so|$)`)
})

func partName(kind profile.TimeKind, name string) string {
	switch kind {
	case profile.TracedTime:
		return "traced routines"
	case profile.ImageTime:
		return "other code of " + name
	case profile.FileTime:
		if interpreters().MatchString(name) {
			return name + " (interpreter)"
		}
		return name
	case profile.KernelTime:
		return "kernel"
	case profile.JITTime:
		return "JIT code"
	}
	return "unknown"
}

// percentOf writes a share to a tenth of a percent: samples do not show more.
func percentOf(s samples.Share) string { return fmt.Sprintf("%.1f%%", 100*s.Value()) }
