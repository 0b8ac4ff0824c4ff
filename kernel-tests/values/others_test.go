package valuetests

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"wpptrace/compress/wpp"
	"wpptrace/kernel-tests/exact"
	"wpptrace/query/slice"
	"wpptrace/query/values"
)

// TestOthersWrote: a slice ends at a read of what a library wrote, or another thread, says where
// the thread itself wrote there before, and which store of another thread it was likely to be.
func TestOthersWrote(t *testing.T) {
	for name, at := range map[string]string{"overflow": "check+0x0", "put": "get+0x0"} {
		isLikely := name == "put"
		t.Run(name, func(t *testing.T) {
			source := filepath.Join("testdata", name+".c")
			text, err := os.ReadFile(source)
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			program, snapshot := filepath.Join(dir, name), filepath.Join(dir, name+".wpp")
			gcc := exec.CommandContext(t.Context(), "gcc", "-O1", "-g", "-fno-builtin", "-pthread",
				"-o", program, source)
			if out, err := gcc.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			if _, err := tracer.ValuesTo(t.Context(), snapshot, exact.Target{Path: program},
				"-F", "."); err != nil {
				t.Fatal(err)
			}
			s := read(t, snapshot)
			a, err := slice.Ask(s, slice.Query{At: at, By: slice.Data})
			if err != nil {
				t.Fatal(err)
			}
			before, isFound := lineOf(t, text, "// before"), false
			for i := range a.Parts {
				p := &a.Parts[i]
				if lineAt(s, p.Place) == before {
					t.Errorf("line %d is in the slice: what it wrote was written over", before)
				}
				f := p.Foreign
				if f == nil {
					continue
				}
				isFound = true
				if f.Since == nil || lineAt(s, *f.Since) != before {
					t.Errorf("the thread wrote there last at %+v, want line %d", f.Since, before)
				}
				if (len(f.Likely) == 1) != isLikely ||
					isLikely && lineAt(s, f.Likely[0].Place) != lineOf(t, text, "// likely") {
					t.Errorf("likely %+v", f.Likely)
				}
			}
			if !isFound || a.Others != 1 {
				t.Errorf("%d reads of what others wrote", a.Others)
			}
		})
	}
}

func lineAt(s *wpp.Snapshot, p slice.Place) int {
	return values.SpanOf(&s.Routines[p.Routine].Blocks[p.Block], p.Insn).Line
}
