package valuetests

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"wpptrace/compress/wet"
	"wpptrace/compress/wet/machine"
	"wpptrace/compress/wpp/variables"
	"wpptrace/internal/testenv"
	"wpptrace/kernel-tests/exact"
	"wpptrace/query/values"
)

// mostInGDB bounds the instructions that gdb steps: it takes milliseconds for each.
const mostInGDB = 200

// TestVariablesInGDB: what is known of a routine's variables, and of their fields, before each
// instruction that it executes is what gdb prints there.
func TestVariablesInGDB(t *testing.T) {
	if _, err := exec.LookPath("gdb"); err != nil {
		testenv.Missing(t, err)
	}
	for _, command := range []string{"gcc -O2 -g", "clang -O2 -g"} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			program, snapshot := filepath.Join(dir, "fields"), filepath.Join(dir, "v.wpp")
			f := append(strings.Fields(command), "-o", program, "testdata/fields.c")
			out, err := exec.CommandContext(t.Context(), f[0], f[1:]...).CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			target := exact.Target{Path: program, Env: []string{}, FixedAddresses: true}
			if _, err := tracer.ValuesTo(t.Context(), snapshot, target, "-F", "^walk"); err != nil {
				t.Fatal(err)
			}
			s := read(t, snapshot)
			table, err := variables.Of(s)
			if err != nil {
				t.Fatal(err)
			}
			seen := replayed(t, s, namedOnce(table))
			seen.lines = seen.lines[:min(mostInGDB, len(seen.lines))]
			seen.compare(t, told(t, program, seen.question()))
		})
	}
}

// namedOnce are the local variables, with what they hold and lead to, whose names no others have.
func namedOnce(table *variables.Table) (list []*values.Asked) {
	count := map[string]int{}
	for i := range table.Variables {
		count[table.Variables[i].Name]++
	}
	var add func(a *values.Asked, depth int)
	add = func(a *values.Asked, depth int) {
		if a.IsNumber() {
			list = append(list, a)
		}
		for _, part := range a.Parts(16) {
			if depth > 0 && !strings.HasSuffix(a.String(), "->") {
				add(part, depth-1)
			}
		}
	}
	for i := range table.Variables {
		if v := &table.Variables[i]; v.Routine >= 0 && v.Inlined == "" && count[v.Name] == 1 {
			add(values.Whole(table, v), 3)
		}
	}
	return list
}

// seenVariables are what is known of variables before each instruction.
type seenVariables struct {
	asked []*values.Asked
	entry *values.Entry
	lines []seenLine
}

type seenLine struct {
	addr  uint64
	known map[string]string
}

func (x *seenVariables) Executed(*wet.Executed) error { return nil }

// Before is for the replay: see wet.Watcher.
func (x *seenVariables) Before(b *wet.Before) error {
	if b.Enters {
		x.entry = values.EntryAt(b)
	}
	line := seenLine{b.Addr, map[string]string{}}
	for _, a := range x.asked {
		value, k, has := a.At(b.Addr, b, x.entry)
		if has && k != machine.Unknown {
			line.known[a.String()] = numberText(a, value)
		}
	}
	x.lines = append(x.lines, line)
	return nil
}

// numberText is a number as the script for gdb prints it.
func numberText(a *values.Asked, value uint64) string {
	unused := 64 - a.Bits()
	switch kind := a.Kind(); kind.Kind {
	case variables.Signed, variables.SignedChar:
		value = uint64(int64(value) << unused >> unused)
	case variables.Float:
		number := math.Float64frombits(value)
		if kind.Size == 4 {
			number = float64(math.Float32frombits(uint32(value)))
		}
		return fmt.Sprintf("%.9g", number)
	}
	return strconv.FormatUint(value, 10)
}

// question is what gdb is asked.
func (x *seenVariables) question() string {
	var text strings.Builder
	for _, line := range x.lines {
		fmt.Fprintf(&text, "%x", line.addr)
		for name := range line.known {
			text.WriteString(" " + name)
		}
		text.WriteByte('\n')
	}
	return text.String()
}

// told is what gdb answers.
func told(t *testing.T, program, question string) string {
	t.Helper()
	dir := t.TempDir()
	asked, answer := filepath.Join(dir, "asked"), filepath.Join(dir, "told")
	if err := os.WriteFile(asked, []byte(question), 0o600); err != nil {
		t.Fatal(err)
	}
	gdb := exec.CommandContext(t.Context(), "gdb", "-nx", "-q", "-batch", "-x",
		"testdata/variables.py", program)
	gdb.Env = append(os.Environ(), "ASKED="+asked, "TOLD="+answer)
	if out, err := gdb.CombinedOutput(); err != nil {
		t.Fatalf("gdb: %v: %s", err, out)
	}
	text, err := os.ReadFile(answer)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// compare fails the test where gdb has another value.
func (x *seenVariables) compare(t *testing.T, answer string) {
	t.Helper()
	compared := map[string]int{}
	for line := range strings.Lines(answer) {
		f := strings.Fields(line)
		n, err := strconv.Atoi(f[0])
		if err != nil || n >= len(x.lines) {
			t.Fatalf("gdb answers %q", line)
		}
		compared[f[1]]++
		if got := x.lines[n].known[f[1]]; got != f[2] {
			t.Errorf("%s is %s before instruction %d, %x, and %s in gdb", f[1], got, n,
				x.lines[n].addr, f[2])
		}
	}
	total := 0
	for _, n := range compared {
		total += n
	}
	t.Logf("%d instructions, %d values of %d variables and fields", len(x.lines), total,
		len(compared))
	for _, name := range []string{"n", "p->key", "p->turn", "p->level", "p->at[1].y"} {
		if compared[name] == 0 {
			t.Errorf("nothing of %s was compared", name)
		}
	}
	if total < 200 {
		t.Errorf("%d values were compared: %v", total, compared)
	}
}
