package valuetests

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"wpptrace/compress/wet/machine"
	"wpptrace/kernel-tests/exact"
	"wpptrace/query/slice"
	"wpptrace/query/values"
)

// TestFault: of a program that dies of a fault, it is known at which instruction, which address it
// accessed, and by slicing that who had written the address; a fault that was handled before is not
// taken for it.
func TestFault(t *testing.T) {
	source := filepath.Join("testdata", "fault.c")
	text, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	for _, level := range []string{"-O0", "-O2"} {
		t.Run(level, func(t *testing.T) {
			dir := t.TempDir()
			program, file := filepath.Join(dir, "fault"), filepath.Join(dir, "fault.wpp")
			gcc := exec.CommandContext(t.Context(), "gcc", level, "-g", "-o", program, source)
			if out, err := gcc.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			if _, err := tracer.ValuesTo(t.Context(), file, exact.Target{Path: program}, "-F",
				"."); err != nil {
				t.Log(err) // it says that the program died
			}
			s := read(t, file)
			e, err := values.FaultOf(s, 0)
			if err != nil || e == nil {
				t.Fatalf("no fault: %v", err)
			}
			line := values.SpanOf(&s.Routines[e.Routine].Blocks[e.Block], e.Insn).Line
			if want := lineOf(t, text, "// fault"); line != want || len(e.Accesses) != 1 {
				t.Fatalf("it faulted in line %d, want %d: %+v", line, want, e)
			}
			const addr = 0xb + 8
			if a := &e.Accesses[0]; a.Write || a.At == machine.Unknown || a.Addr != addr {
				t.Errorf("it accessed %+v, want %#x", a, addr)
			}
			if rank(t, s, slice.Query{At: "end", By: slice.Data}, lineOf(t, text, "// cause")) < 1 {
				t.Error("the cause is not in the slice")
			}
		})
	}
}
