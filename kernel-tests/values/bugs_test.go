package valuetests

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/format"
	"wpptrace/kernel-tests/exact"
	"wpptrace/query"
	"wpptrace/query/slice"
)

// TestThreeBugs: of three faulty programs, in the shape of public bugs, what the symptom's values
// come from has the cause among its ten nearest source lines; and so has what it comes from in
// all, at any distance.
func TestThreeBugs(t *testing.T) {
	for _, name := range []string{"index", "length", "freed"} {
		t.Run(name, func(t *testing.T) {
			source := filepath.Join("testdata", name+".c")
			text, err := os.ReadFile(source)
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			program, snapshot := filepath.Join(dir, name), filepath.Join(dir, name+".wpp")
			gcc := exec.CommandContext(t.Context(), "gcc", "-O2", "-g", "-o", program, source)
			if out, err := gcc.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			if _, err := tracer.ValuesTo(t.Context(), snapshot,
				exact.Target{Path: program}, "-F", "."); err != nil {
				t.Fatal(err)
			}
			s := read(t, snapshot)
			symptom, cause := lineOf(t, text, "// symptom"), lineOf(t, text, "// cause")
			at := fmt.Sprintf("%s.c:%d", name, symptom)
			const near = 10
			if n := rank(t, s, slice.Query{At: at, By: slice.Data}, cause); n < 1 || n > near {
				t.Errorf("the cause is line %d of the values' slice", n)
			}
			if rank(t, s, slice.Query{At: at, By: slice.Data | slice.Control}, cause) < 1 {
				t.Error("the cause is not in the slice")
			}
		})
	}
}

func read(t *testing.T, path string) *wpp.Snapshot {
	t.Helper()
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s, err := format.Read(bytes.NewReader(file), query.Sections()...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// lineOf is the number of the line that has a comment.
func lineOf(t *testing.T, text []byte, comment string) int {
	t.Helper()
	before, _, ok := strings.Cut(string(text), comment)
	if !ok {
		t.Fatalf("no line has %s", comment)
	}
	return 1 + strings.Count(before, "\n")
}

// rank is how many source lines of a slice are at least as near as one, and it; 0: it has it not.
func rank(t *testing.T, s *wpp.Snapshot, q slice.Query, line int) int {
	t.Helper()
	a, err := slice.Ask(s, q)
	if err != nil {
		t.Fatal(err)
	}
	lines := a.Lines(s)
	t.Logf("%d of %d instructions executed, in %d lines", a.In, a.Executed, len(lines))
	for i := range lines {
		is := lines[i].Span.Line == line
		for c := range s.Stack(lines[i].Span.Call) {
			is = is || c.Line == line
		}
		if is {
			t.Logf("the cause is line %d, %d away", i+1, lines[i].Away)
			return i + 1
		}
	}
	return 0
}
