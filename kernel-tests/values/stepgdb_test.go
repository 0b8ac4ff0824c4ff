package valuetests

import (
	"math"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"wpptrace/compress/wet"
	"wpptrace/compress/wet/machine"
	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/variables"
	"wpptrace/internal/testenv"
	"wpptrace/kernel-tests/exact"
	"wpptrace/query/stepping"
	"wpptrace/query/values"
)

// mostStepped is how many instructions gdb steps, at most.
const mostStepped = 480

// TestStepVariablesInGDB: what step knows of variables, and of what they hold and lead to, before
// each instruction of a program that calls external code between their uses is what gdb prints
// there; and without optimization most is known.
func TestStepVariablesInGDB(t *testing.T) {
	if _, err := exec.LookPath("gdb"); err != nil {
		testenv.Missing(t, err)
	}
	for command, least := range map[string]float64{
		"gcc -O0 -g": .9, "clang -O0 -g": .9, "gcc -O2 -g": .5,
	} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			program, snapshot := filepath.Join(dir, "external"), filepath.Join(dir, "v.wpp")
			f := append(strings.Fields(command), "-o", program, "testdata/external.c")
			out, err := exec.CommandContext(t.Context(), f[0], f[1:]...).CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			target := exact.Target{Path: program, Env: []string{}, FixedAddresses: true}
			if _, err := tracer.ValuesTo(t.Context(), snapshot, target, "-F",
				"^(main|set|find|median|larger)$"); err != nil {
				t.Fatal(err)
			}
			s := read(t, snapshot)
			table, err := variables.Of(s)
			if err != nil {
				t.Fatal(err)
			}
			asked := namedOnce(table)
			lines := stepped(t, s, asked)
			lines = lines[:min(mostStepped, len(lines))]
			alone := replayed(t, s, asked)
			x := &seenVariables{}
			for _, line := range lines {
				x.lines = append(x.lines, line.seenLine)
			}
			all, known, before := 0, 0, 0 // of variables that have been given a value
			for line := range strings.Lines(told(t, program, x.question())) {
				f := strings.Fields(line)
				n, err := strconv.Atoi(f[0])
				if err != nil || n >= len(lines) {
					t.Fatalf("gdb answers %q", line)
				}
				got := lines[n].known[f[1]]
				if lines[n].given[f[1]] {
					all++
					if alone.lines[n].known[f[1]] != "" {
						before++
					}
					if got != "" {
						known++
					}
				}
				if got != "" && got != f[2] {
					t.Errorf("%s is %s before instruction %d, %x, and %s in gdb", f[1], got, n,
						lines[n].addr, f[2])
				}
			}
			t.Logf("of %d values before %d instructions %d are known, %d without what is read later",
				all, len(lines), known, before)
			if all < 500 || float64(known) < least*float64(all) {
				t.Errorf("of %d values %d are known", all, known)
			}
		})
	}
}

// stepped is what step knows before each instruction; "": that is not known.
func stepped(t *testing.T, s *wpp.Snapshot, asked []*values.Asked) (lines []steppedLine) {
	t.Helper()
	x, err := stepping.New(s, 0)
	if err != nil {
		t.Fatal(err)
	}
	for {
		m, err := x.In(0)
		if err != nil {
			t.Fatal(err)
		}
		line := steppedLine{seenLine{m.Place.Addr, map[string]string{}}, map[string]bool{}}
		for _, a := range asked {
			if a.Variable.Routine != m.Place.Routine || !a.Has(m.Place.Addr) {
				continue
			}
			line.known[a.String()] = ""
			line.given[a.String()] = a.String() == a.Variable.Name &&
				m.Place.Span.Line > a.Variable.Line
			if value, k := m.Value(a); k != machine.Unknown {
				line.known[a.String()] = numberText(a, value)
			}
		}
		lines = append(lines, line)
		end, err := x.Instruction(stepping.Forward)
		if err != nil {
			t.Fatal(err)
		}
		if end == stepping.Last {
			return lines
		}
	}
}

// A steppedLine is one with the variables whose declarations come before it.
type steppedLine struct {
	seenLine
	given map[string]bool
}

// replayed is what a replay knows before each instruction.
func replayed(t *testing.T, s *wpp.Snapshot, asked []*values.Asked) *seenVariables {
	t.Helper()
	x := &seenVariables{asked: asked}
	segments, err := wet.Segments(s, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i := range segments {
		if err := segments[i].Replay(0, math.MaxUint64, x); err != nil {
			t.Fatal(err)
		}
	}
	return x
}
