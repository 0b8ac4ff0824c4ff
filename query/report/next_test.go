package report

import (
	"slices"
	"testing"

	"wpptrace/compress/wpp/samples"
	"wpptrace/query/profile"
	"wpptrace/query/querytest"
)

// TestNext: what there is to ask next has the names of what is hot, as a shell takes them.
func TestNext(t *testing.T) {
	for _, c := range []struct {
		name     string
		library  string
		inMain   uint64 // samples of 100
		selected bool
		want     []string
	}{
		{"main", "libz.so.1", 50, false, []string{
			"--lib libz.so.1 traces that library too: 30.0% of the CPU time",
			"-F '^main$' traces that routine alone: 50.0% of the CPU time"}},
		{"main", "[vdso]", 50, true, []string{
			"wpptrace hot --callers main 'my x.wpp' prints who calls it"}},
		{"operator new", "libz.so.1", 70, true, []string{
			"--lib libz.so.1 traces that library too: 30.0% of the CPU time",
			"wpptrace hot --callers 'operator new' 'my x.wpp' prints who calls it"}},
		{"f'", "a b.so", 10, false, []string{
			"--lib 'a b.so' traces that library too: 30.0% of the CPU time",
			`-F '^f'\''$' traces that routine alone: 10.0% of the CPU time`}},
		{"main", "libz.so.1", 1, false, []string{
			"--lib libz.so.1 traces that library too: 30.0% of the CPU time"}},
	} {
		s := querytest.Compressor()
		s.Routines[0].Name = c.name
		p := &samples.Profile{Kernel: 70 - c.inMain, Files: []samples.File{
			{Path: "/usr/bin/squeeze", Samples: c.inMain,
				Routines: []samples.InRoutine{{Routine: 0, Samples: c.inMain}}},
			{Path: "/usr/lib/" + c.library, Image: samples.NoImage, Samples: 30}}}
		s.Sections = append(s.Sections, p.Section())
		flat, err := profile.Flat(s)
		if err != nil {
			t.Fatal(err)
		}
		if got := Next(s, flat, "my x.wpp", c.selected); !slices.Equal(got, c.want) {
			t.Errorf("%s in %s: %q, want %q", c.name, c.library, got, c.want)
		}
	}
	s := querytest.Compressor()
	flat, err := profile.Flat(s)
	if err != nil {
		t.Fatal(err)
	}
	if got := Next(s, flat, "x.wpp", false); got != nil {
		t.Errorf("without samples: %q", got)
	}
}

// TestNextOfJIT: code of a just-in-time compiler is named by what its runtime is asked for, once.
func TestNextOfJIT(t *testing.T) {
	const cannot = " its JIT code, which cannot be traced: 60.0% of the CPU time"
	for _, c := range []struct {
		file  string
		inJIT uint64 // samples of 100
		names map[string]uint64
		want  []string
	}{
		{"libjvm.so", 60, nil, []string{
			"jcmd 4711 Compiler.perfmap has the next recording name" + cannot}},
		{"node", 60, nil, []string{
			"node --perf-basic-prof, as it is started, has a recording name" + cannot}},
		{"libother.so", 60, nil, []string{"/tmp/perf-PID.map, which most just-in-time compilers " +
			"write where they are asked to, names" + cannot}},
		{"libjvm.so", 60, map[string]uint64{"work": 60}, nil},
		{"libjvm.so", 5, nil, nil},
	} {
		s := querytest.Compressor()
		s.Figures.PID = 4711
		p := &samples.Profile{Kernel: 99 - c.inJIT,
			Files: []samples.File{
				{Path: "/usr/lib/" + c.file, Image: samples.NoImage, Samples: 1}},
			JIT: []samples.Memory{{Samples: c.inJIT, Names: c.names}}}
		s.Sections = append(s.Sections, p.Section())
		flat, err := profile.Flat(s)
		if err != nil {
			t.Fatal(err)
		}
		if got := Next(s, flat, "x.wpp", false); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.file, got, c.want)
		}
	}
}
