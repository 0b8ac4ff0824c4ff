package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/covered"
	"wpptrace/compress/wpp/store"
	"wpptrace/internal/testenv"
	"wpptrace/query"
	"wpptrace/query/querytest"
	"wpptrace/query/report"
)

// TestProfileOfAProcess: a process at work is counted whole, or in windows, which the report and
// its JSON say.
func TestProfileOfAProcess(t *testing.T) {
	for _, c := range []struct {
		name  string
		flags []string
		whole bool
	}{
		{"whole", []string{"--overhead", "0", "--max-slowdown", "0"}, true},
		{"windows", []string{"--overhead", "20"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			busy := testenv.Start(t, exec.Command(compileRandomPaths(t)))
			w := startTracer(t, append([]string{"profile", "--json", "-p",
				strconv.Itoa(busy.PID()), "-o", "x.wpp", "-d", "2s"}, c.flags...)...)
			w.wait(0)
			var object report.ProfileJSON
			if err := json.Unmarshal([]byte(w.stdout.String()), &object); err != nil {
				t.Fatalf("%v: %s", err, w.stdout.String())
			}
			if len(object.Paths) == 0 || object.Executions == 0 ||
				(object.Sampled != nil && *object.Sampled == 1) != c.whole {
				t.Errorf("%s", w.stdout.String())
			}
			s, err := store.ReadFile(w.path("x.wpp"), query.Sections()...)
			if err != nil || len(s.Threads) > 0 {
				t.Fatal(err)
			}
			out, errs, status := wpptrace("hot", "--top", "3", w.path("x.wpp"))
			if status != 0 || errs != "" ||
				strings.Contains(out, "window") == c.whole {
				t.Errorf("hot: %s%s", out, errs)
			}
		})
	}
}

// TestProfileOfACommand: its exit status is the command's, and what is counted twice is counted in
// sum twice as often.
func TestProfileOfACommand(t *testing.T) {
	if testing.Short() {
		t.Skip("it traces a process")
	}
	dir := t.TempDir()
	one, sum := filepath.Join(dir, "one.wpp"), filepath.Join(dir, "sum.wpp")
	command := []string{"profile", "-q", "-o", one, "--", "bash", "--norc", "-c",
		"for i in 1 2 3; do x=$((x + i)); done; exit 7"}
	if _, errs, status := wpptrace(command...); status != 7 || errs != "" {
		t.Fatalf("exit status %d: %s", status, errs)
	}
	if _, errs, status := wpptrace("merge", "-o", sum, one, one); status != 0 || errs != "" {
		t.Fatalf("exit status %d: %s", status, errs)
	}
	var counts [2]map[string]uint64
	for i, file := range []string{one, sum} {
		s, err := store.ReadFile(file, query.Sections()...)
		if err != nil {
			t.Fatal(err)
		}
		object, err := report.NewProfileJSON(s)
		if err != nil {
			t.Fatal(err)
		}
		counts[i] = map[string]uint64{}
		for _, p := range object.Paths {
			counts[i][p.Name(100)] = p.Count
			if !p.Exact {
				t.Errorf("%s is not exact", p.Name(100))
			}
		}
	}
	if len(counts[0]) < 100 || len(counts[0]) != len(counts[1]) {
		t.Errorf("%d paths, and %d in the sum", len(counts[0]), len(counts[1]))
	}
	for name, n := range counts[0] {
		if counts[1][name] != 2*n {
			t.Errorf("%s: %d, and %d in the sum", name, n, counts[1][name])
		}
	}
}

// TestMergeOnAFullDisk: what is there stays whole, and one line says why.
func TestMergeOnAFullDisk(t *testing.T) {
	if testing.Short() {
		t.Skip("it mounts a file system")
	}
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=16k"); err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
	sum, s := filepath.Join(dir, "sum.wpp"), querytest.Letters("abcabc")
	must(t, store.WriteFile(sum, s))
	before, err := os.ReadFile(sum)
	must(t, err)
	for i := range 30_000 { // which compress badly
		s.Routines = append(s.Routines, wpp.Routine{Name: fmt.Sprint(i * i * 7919),
			Entry: uint64(0x10_0000 + i*i)})
	}
	large := filepath.Join(t.TempDir(), "large.wpp")
	must(t, store.WriteFile(large, s))
	_, errs, status := wpptrace("merge", "-o", sum, large)
	if want := "wpptrace: write snapshot " + sum + ": no space left on device: "; status != 1 ||
		!strings.HasPrefix(errs, want) || strings.Count(errs, "\n") != 1 {
		t.Errorf("exit status %d, %q, want %q", status, errs, want)
	}
	after, err := os.ReadFile(sum)
	must(t, err)
	names, err := os.ReadDir(dir)
	if !bytes.Equal(before, after) || err != nil || len(names) != 1 {
		t.Errorf("%d bytes, and %d before; %v", len(after), len(before), names)
	}
}

// TestCoverageIsNoProfile: what says which code has run says nothing of paths, in one line.
func TestCoverageIsNoProfile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.wpp")
	must(t, store.WriteFile(file, &wpp.Snapshot{Sections: []*wpp.Section{
		(&covered.Coverage{}).Section()}}))
	for _, command := range [][]string{{"hot"}, {"merge", "-o", file + "2"}, {"compact"},
		{"plan", "/bin/true", "--interesting"}, {"plan", "/bin/true", "--weights"}} {
		_, errs, status := wpptrace(append(command, file)...)
		if want := "read " + file + ": it says which code has run, and not in which " +
			"paths: wpptrace coverage prints it\n"; status != 1 || !strings.HasSuffix(errs, want) {
			t.Errorf("%q: exit status %d, %q, want %q", command, status, errs, want)
		}
	}
}

// bounds takes the degree that a profile was made with: who paid for two gets two. What merge
// leaves out of it, merge says.
func TestDegreeOfProfile(t *testing.T) {
	program := testenv.CompileC(t, `int main(int argc, char **argv)
{
	volatile int n = 0;
	for (int i = 0; i < 20; i++) {
		if (i % 2)
			n++;
		if (i % 3)
			n += 2;
	}
	return 0;
}`)
	file := filepath.Join(t.TempDir(), "x.wpp")
	if _, errs, status := wpptrace("profile", "-q", "--overlap", "2", "-o", file, "--",
		program); status != 0 {
		t.Fatalf("status %d: %s", status, errs)
	}
	out, errs, status := wpptrace("bounds", file)
	if status != 0 || !strings.HasPrefix(out, "Bounds by overlapping paths of degree 2;") {
		t.Errorf("bounds: status %d, %s%s", status, errs, out)
	}
	out, errs, status = wpptrace("merge", "-o", filepath.Join(t.TempDir(), "y.wpp"), file)
	if status != 0 || !strings.Contains(errs, "how paths go on, which --overlap counts, is left") {
		t.Errorf("merge: status %d, %s%s", status, errs, out)
	}
}
