package report

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/samples"
	"wpptrace/query"
	"wpptrace/query/querytest"
)

// sampled is a snapshot with samples.
func sampled() *wpp.Snapshot {
	s := querytest.Compressor()
	p := &samples.Profile{
		Period:  time.Millisecond,
		CPUTime: 1200 * time.Millisecond,
		Wall:    2 * time.Second,
		Kernel:  500,
		Unknown: 1,
		Lost:    2,
		Files: []samples.File{
			{
				Path:    "/usr/bin/compressor",
				Image:   0,
				Samples: 420,
				Routines: []samples.InRoutine{
					{Routine: 0, Samples: 400},
					{Routine: 1, Samples: 12},
				},
			},
			{Path: "/usr/lib/x86_64-linux-gnu/libc.so.6", Image: samples.NoImage, Samples: 80,
				Names: map[string]uint64{"memcpy": 50, "strlen": 20}},
			{Path: "/usr/lib/\x1blibrare.so", Image: samples.NoImage, Samples: 3},
		},
		JIT: []samples.Memory{{Mapping: "[anon:v8]", Samples: 6,
			Names: map[string]uint64{"LazyCompile:*f app.js:1": 4}}, {Mapping: "", Samples: 5},
			{Mapping: "[vdso]", Samples: 7}},
	}
	s.Sections = append(s.Sections, p.Section())
	return s
}

func TestCPUTime(t *testing.T) {
	s := sampled()
	hot, err := query.Hot(s, query.DefaultHotQuery())
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := WriteHot(&out, s, hot); err != nil {
		t.Fatal(err)
	}
	const want = "CPU time: 48.8% kernel, 40.2% traced routines, 7.8% libc.so.6, " +
		"1.1% JIT code, 0.8% other code of compressor, 1.3% other (1024 samples; 0.6 CPUs busy)\n"
	if got, _, _ := strings.Cut(out.String(), "Command"); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	checkGolden(t, "cputime.json", func(w io.Writer) error { return WriteHotJSON(w, s, hot) })
}

// TestDamagedSamples: where samples cannot be read, all else is printed.
func TestDamagedSamples(t *testing.T) {
	s := querytest.Compressor()
	s.Sections = append(s.Sections, wpp.NewSection(samples.Kind, []byte{0xff}))
	hot, err := query.Hot(s, query.DefaultHotQuery())
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := WriteHot(&out, s, hot); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(out.String(), "CPU time: not known: ") ||
		!strings.Contains(out.String(), "\nCommand: ") {
		t.Error(out.String())
	}
	if err := WriteHotJSON(io.Discard, s, hot); err == nil {
		t.Error("JSON: no error")
	}
}
