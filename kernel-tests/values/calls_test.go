package valuetests

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"wpptrace/kernel-tests/exact"
	"wpptrace/query/rules"
)

// TestFreedTwice: of a program that uses freed memory and frees it again, patterns with values find
// what reading the dump line by line does, and where its source has it.
func TestFreedTwice(t *testing.T) {
	dir := t.TempDir()
	source := filepath.Join("testdata", "twice.c")
	program, snapshot := filepath.Join(dir, "twice"), filepath.Join(dir, "twice.wpp")
	gcc := exec.CommandContext(t.Context(), "gcc", "-O0", "-g", "-o", program, source)
	if out, err := gcc.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if _, err := tracer.ValuesTo(t.Context(), snapshot, exact.Target{Path: program},
		"-F", "."); err != nil {
		t.Fatal(err)
	}
	dump, err := exec.CommandContext(t.Context(), tracer.Path(), "dump", "--as", "values",
		snapshot).Output()
	if err != nil {
		t.Fatal(err)
	}
	want := readFrees(t, program, string(dump))
	if len(want.uses) == 0 || len(want.again) == 0 {
		t.Fatalf("the dump has %d uses of what is freed, and %d double frees", len(want.uses),
			len(want.again))
	}
	s := read(t, snapshot)
	for pattern, want := range map[string][]string{
		"free(p!=0) (!malloc()=p)* use(p,48)": want.uses,
		"free(p!=0) (!malloc()=p)* free(p)":   want.again,
	} {
		r, err := rules.Find(s, rules.FindQuery{Pattern: pattern, First: 1, Top: 100})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, o := range r.Occurrences {
			last := o.Match.Deeds[len(o.Match.Deeds)-1]
			got = append(got, fmt.Sprintf("%x %x", last.Addr, o.Match.Bound[0].Value))
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: found %v, the dump has %v", pattern, got, want)
		}
	}
	text, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	checked, err := rules.Check(s, []string{"never free(p!=0) (!malloc()=p)* free(p)"})
	if err != nil {
		t.Fatal(err)
	}
	first := checked.Rules[0].Witnesses[0].Match.Deeds[0]
	cause := lineOf(t, text, "// table[i] stays")
	if block := s.Routines[first.Routine].Blocks[first.Block]; block.Line > cause ||
		block.Last < cause {
		t.Errorf("what is freed twice was freed first at lines %d to %d, not %d", block.Line,
			block.Last, cause)
	}
}

// frees are what a dump has of memory after it was freed: the instruction, and what was freed.
type frees struct{ uses, again []string }

// readFrees reads a dump of code that was not optimized: what malloc returns is stored right behind
// its call.
func readFrees(t *testing.T, program, dump string) (found frees) {
	t.Helper()
	code, err := exec.CommandContext(t.Context(), "objdump", "-d", program).Output()
	if err != nil {
		t.Fatal(err)
	}
	calls := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^ +([0-9a-f]+):.*call .*<(free|malloc)@plt>`).
		FindAllStringSubmatch(string(code), -1) {
		calls[m[1]] = m[2]
	}
	access := regexp.MustCompile(`[rw]\[([0-9a-f]+):(\d+)\](?:=([0-9a-f]+))?`)
	freed := map[uint64]bool{}
	rdi, isKnown, before := uint64(0), false, ""
	for line := range strings.Lines(dump) {
		fields := strings.Fields(line)
		if len(fields) < 3 || line[0] == '#' {
			continue
		}
		at := fields[2]
		accesses := access.FindAllStringSubmatch(line, -1)
		if calls[before] == "malloc" && len(accesses) > 0 {
			delete(freed, hexNumber(t, accesses[0][3]))
		}
		for _, a := range accesses {
			addr := hexNumber(t, a[1])
			size, err := strconv.ParseUint(a[2], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			for p := range freed {
				if addr < p+48 && p < addr+size {
					found.uses = append(found.uses, fmt.Sprintf("%s %x", at, p))
				}
			}
		}
		if calls[at] == "free" && isKnown && rdi != 0 {
			if freed[rdi] {
				found.again = append(found.again, fmt.Sprintf("%s %x", at, rdi))
			}
			freed[rdi] = true
		}
		for _, f := range fields[3:] {
			if v, ok := strings.CutPrefix(f, "rdi="); ok {
				if isKnown = v != "-"; isKnown {
					rdi = hexNumber(t, strings.TrimSuffix(v, "?"))
				}
			}
		}
		before = at
	}
	return found
}

func hexNumber(t *testing.T, hex string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(hex, 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
