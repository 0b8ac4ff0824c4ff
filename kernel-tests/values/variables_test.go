package valuetests

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"wpptrace/compress/wet/machine"
	"wpptrace/compress/wpp"
	"wpptrace/kernel-tests/exact"
	"wpptrace/query/valuereport"
	"wpptrace/query/values"
)

// TestVariables: a program prints each value that its variables take, and their fields. What is
// known of them is among these, in their order, and something is known of each.
func TestVariables(t *testing.T) {
	for _, command := range []string{
		"gcc -O0 -g variables.c", "gcc -O2 -g variables.c", "gcc -O2 -gdwarf-4 variables.c",
		"gcc -O0 -g fields.c", "gcc -O2 -gdwarf-4 fields.c", "clang -O0 -g fields.c",
		"clang -O2 -g fields.c", "clang -O2 -gdwarf-4 fields.c",
		"g++ -O0 -g variables.cc", "clang++ -O1 -g variables.cc", "rustc -O -g variables.rs",
	} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			program, snapshot := filepath.Join(dir, "variables"), filepath.Join(dir, "v.wpp")
			f := strings.Fields(command)
			f[len(f)-1] = filepath.Join("testdata", f[len(f)-1])
			if _, err := exec.LookPath(f[0]); err != nil && f[0] == "rustc" {
				t.Skip("there is no rustc")
			}
			compiler := exec.CommandContext(t.Context(), f[0], append(f[1:], "-o", program)...)
			if out, err := compiler.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			outcome, err := tracer.ValuesTo(t.Context(), snapshot, exact.Target{Path: program},
				"-q", "-F", "main|fact|sum|spin|walk|passed|fill|turned|pay|larger|grow|total|note")
			if err != nil {
				t.Fatal(err)
			}
			s := read(t, snapshot)
			printed := map[string][]string{}
			for line := range strings.Lines(string(outcome.Stdout)) {
				name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
				printed[name] = append(printed[name], value)
			}
			for name, want := range printed {
				list, err := values.VariablesNamed(s, name)
				if err != nil {
					t.Error(err)
					continue
				}
				var text bytes.Buffer
				q := &valuereport.VariableQuestion{Asked: list}
				if err := valuereport.WriteVariables(&text, s, q); err != nil {
					t.Error(err)
				}
				checkTaken(t, name, text.String(), want)
			}
		})
	}
}

// checkTaken compares what WriteVariables has written of a variable with the values that it took: a
// value that is first in its activation may be what was in memory before.
func checkTaken(t *testing.T, name, text string, want []string) {
	t.Helper()
	instance, left, known := "", want, 0
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if f[0] == "INSTANCE" || f[5] == "-" {
			continue
		}
		value := strings.TrimSuffix(strings.Join(f[5:], " "), "?")
		switch i := slices.Index(left, value); {
		case i >= 0:
			left = left[i:] // it may be known again
			known++
		case f[0] == instance:
			t.Errorf("%s: %s is wrong, or not in its order\n%s", name, value, text)
		}
		instance = f[0]
	}
	if known == 0 {
		t.Errorf("%s: nothing is known of it\n%s", name, text)
	}
}

// TestWatchVariables: who writes a global variable, and a local one in each activation of a
// routine that calls itself.
func TestWatchVariables(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program, snapshot := filepath.Join(dir, "variables"), filepath.Join(dir, "v.wpp")
	gcc := exec.CommandContext(t.Context(), "gcc", "-O0", "-g", "-o", program,
		filepath.Join("testdata", "variables.c"))
	if out, err := gcc.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if _, err := tracer.ValuesTo(t.Context(), snapshot, exact.Target{Path: program},
		"-q", "-F", "main|fact|sum|spin"); err != nil {
		t.Fatal(err)
	}
	s := read(t, snapshot)
	for name, want := range map[string]string{
		"total":      "0:3 0:-5 0:122 0:-6 0:-4320",
		"fact.below": "6:1 5:1 4:2 3:6 2:24 1:120",
	} {
		list, err := values.VariablesNamed(s, name)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		var missed values.Missed
		q := values.WatchQuery{Variables: list, WritesOnly: true}
		for x, err := range values.Watch(s, q, &missed) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, fmt.Sprintf("%d:%d", x.Instance,
				int32(binary.LittleEndian.Uint32(x.Access.Data()))))
		}
		if text := strings.Join(got, " "); text != want {
			t.Errorf("%s: written %s, want %s", name, text, want)
		}
	}
}

// TestVariablesOnceSet: calls of external code between the uses of a variable make no lines of it:
// there is one each time that it changes, without optimization, and where one instruction reads and
// writes it.
func TestVariablesOnceSet(t *testing.T) {
	t.Parallel()
	for level, all := range map[string]map[string]string{
		"-O0": {
			"main.done":    "1:0 1:1 1:2 1:3 1:4 1:5",
			"main.texts":   "1:0 1:1 1:2",
			"set.n":        "1:12 2:0 3:0 4:-7 5:31",
			"median.count": "1:0 1:1 1:2",
			"median.scale": "1:3",
			"set.e":        "1:0 1:x 2:0 2:x 3:x 4:0 4:x 5:x",
			"set.key":      "1:x 2:x 3:x 4:x 5:x",
		},
		"-O2": {"entries": "0:0 0:1 0:2 0:3"},
	} {
		t.Run(level, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			program, snapshot := filepath.Join(dir, "external"), filepath.Join(dir, "v.wpp")
			gcc := exec.CommandContext(t.Context(), "gcc", level, "-g", "-o", program,
				filepath.Join("testdata", "external.c"))
			if out, err := gcc.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			if _, err := tracer.ValuesTo(t.Context(), snapshot, exact.Target{Path: program},
				"-q", "-F", "^(main|set|find|median|larger)"); err != nil {
				t.Fatal(err)
			}
			s := read(t, snapshot)
			for name, want := range all {
				if text, err := taken(s, name, strings.HasSuffix(want, "x")); err != nil ||
					text != want {
					t.Errorf("%s: %s, want %s; %v", name, text, want, err)
				}
			}
		})
	}
}

// taken is each value that a variable takes, behind the number of its activation.
func taken(s *wpp.Snapshot, name string, isPointer bool) (string, error) {
	list, err := values.VariablesNamed(s, name)
	if err != nil {
		return "", err
	}
	var got []string
	err = values.EachTaken(s, list, nil, func(x *values.Taken) error {
		text := fmt.Sprint(int32(x.Value))
		switch {
		case x.Known == machine.Unknown:
			text = "-"
		case isPointer && x.Value != 0:
			text = "x"
		}
		got = append(got, fmt.Sprintf("%d:%s", x.Instance, text))
		return nil
	})
	return strings.Join(got, " "), err
}
