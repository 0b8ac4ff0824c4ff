package main

import (
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"wpptrace/compress/wpp/store"
	"wpptrace/internal/testenv"
	"wpptrace/loader/image"
)

// TestSourceLines: the snapshot of a program with debug information has its source lines.
func TestSourceLines(t *testing.T) {
	program := testenv.CompileC(t, "int main(int c, char **v) {\n\tint s = 0;\n\tfor (int i = 0; "+
		"i < 100; i++)\n\t\tif (i % 3)\n\t\t\ts += i;\n\treturn s == 0;\n}\n", "-g", "-O1")
	snapshot := filepath.Join(t.TempDir(), "x.wpp")
	if _, errs, status := wpptrace("-q", "-o", snapshot, "--", program); status != 0 {
		t.Fatalf("exit %d: %s", status, errs)
	}
	for _, args := range [][]string{{"hot", "-l", "1"}, {"path", "main#0"}} {
		out, errs, status := wpptrace(append(args, snapshot)...)
		if status != 0 || !strings.Contains(out, "prog.c:") {
			t.Errorf("%s: exit %d: %s, no source lines:\n%s", args[0], status, errs, out)
		}
	}
}

// inlining is a program whose loop has code of three routines that are inlined in each other.
const inlining = `static inline __attribute__((always_inline)) int third(int x)
{
	return x % 7 ? x * 3 + 1 : x - 5;
}
static inline __attribute__((always_inline)) int second(int x)
{
	return third(x) ^ third(x + 1);
}
static inline __attribute__((always_inline)) int first(int x)
{
	return x > 3 ? second(x) : x;
}
int main(int c, char **v)
{
	int s = 0;
	for (int i = 0; i < 100 * c; i++)
		s += first(i);
	return s == 0;
}
`

// inlinedText is what is printed of the path of inlining's main that runs most of its instructions.
var inlinedText = []string{"prog.c:3 in third", "inlined at PATH/prog.c:7 in second",
	"inlined at PATH/prog.c:11 in first", "inlined at PATH/prog.c:17 in main"}

// TestInlinedCalls: a recording reports what is inlined where, in its table, of a path, and as
// JSON.
func TestInlinedCalls(t *testing.T) {
	program := testenv.CompileC(t, inlining, "-g", "-O2")
	snapshot := filepath.Join(t.TempDir(), "x.wpp")
	if _, errs, status := wpptrace("-q", "-o", snapshot, "--", program); status != 0 {
		t.Fatalf("exit %d: %s", status, errs)
	}
	checkInlined(t, snapshot, filepath.Dir(program))
}

func checkInlined(t *testing.T, snapshot, dir string) {
	t.Helper()
	const names = " (first, second, third)"
	out, errs, status := wpptrace("hot", "-l", "1", "--top", "1", snapshot)
	line := out[strings.Index(out, "SUBPATH")+len("SUBPATH"):]
	if status != 0 || !strings.Contains(line, "main#") || !strings.Contains(line,
		"prog.c:16-17"+names) {
		t.Fatalf("exit %d: %s, no inlined calls:\n%s", status, errs, out)
	}
	name, _, _ := strings.Cut(line[strings.Index(line, "main#"):], " ")
	for _, text := range inlinedText {
		if out, errs, status = wpptrace("path", name, snapshot); status != 0 ||
			!strings.Contains(out, strings.Replace(text, "PATH", dir, 1)) {
			t.Errorf("path %s: exit %d: %s, no %s:\n%s", name, status, errs, text, out)
		}
	}
	want := `"inlined":[[{"routine":"third","file":"` + dir +
		`/prog.c","line":7},{"routine":"second","file":"` + dir +
		`/prog.c","line":11},{"routine":"first",`
	if out, errs, status = wpptrace("hot", "-l", "1", "--json", snapshot); status != 0 ||
		!strings.Contains(out, want) {
		t.Errorf("JSON: exit %d: %s, no %s:\n%s", status, errs, want, out)
	}
}

// installDebug has a program's debug information in a directory as it is to be in /usr/lib/debug,
// as if for a build id in hex, and strips the program of it.
func installDebug(t *testing.T, dir, program, id string) {
	t.Helper()
	companion := filepath.Join(dir, ".build-id", id[:2], id[2:]+".debug")
	must(t, os.MkdirAll(filepath.Dir(companion), 0o755))
	for _, args := range [][]string{{"objcopy", "--only-keep-debug", program, companion},
		{"strip", program}} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", args[0], err, out)
		}
	}
}

// recordWithDebug records a program where a directory is /usr/lib/debug, which it is for the tracer
// alone.
func recordWithDebug(t *testing.T, dir, snapshot, program string) (messages string) {
	t.Helper()
	const place = "/usr/lib/debug"
	if os.Mkdir(place, 0o755) == nil {
		t.Cleanup(func() { os.Remove(place) })
	}
	out, err := exec.Command("unshare", "--mount", "sh", "-c",
		`mount --bind "$1" "$0" && exec wpptrace -v -o "$2" -- "$3"`, place, dir, snapshot,
		program).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

func buildIDOf(t *testing.T, program string) string {
	t.Helper()
	im, err := image.OpenFile(program)
	must(t, err)
	defer im.Close()
	return im.BuildID
}

// TestInstalledDebugInformation: a stripped program is recorded as one with debug information, if
// that is installed.
func TestInstalledDebugInformation(t *testing.T) {
	dir, snapshot := t.TempDir(), filepath.Join(t.TempDir(), "x.wpp")
	program := testenv.CompileC(t, inlining, "-g", "-O2")
	installDebug(t, dir, program, buildIDOf(t, program))
	messages := recordWithDebug(t, dir, snapshot, program)
	if strings.Contains(messages, "WARN") {
		t.Error(messages)
	}
	checkInlined(t, snapshot, filepath.Dir(program))
}

// TestForeignDebugInformation: what is installed for a build id that it has not is passed over,
// which one line says; the recording is as without it.
func TestForeignDebugInformation(t *testing.T) {
	dir, snapshot := t.TempDir(), filepath.Join(t.TempDir(), "x.wpp")
	program, other := testenv.CompileC(t, inlining, "-g", "-O2"), testenv.CompileC(t, inlining,
		"-g", "-O1")
	id := buildIDOf(t, program)
	installDebug(t, dir, program, id)
	installDebug(t, dir, other, id)
	messages := recordWithDebug(t, dir, snapshot, program)
	want :=
		`level=WARN msg="debug information is passed over" image=prog why="/usr/lib/debug/.build-id/` + id[:2] + "/" + id[2:] + ".debug: it is not of build id " + id + `"`
	if strings.Count(messages, "WARN") != 1 || !strings.Contains(messages, want) {
		t.Errorf("no line that says %s:\n%s", want, messages)
	}
	s, err := store.ReadFile(snapshot)
	must(t, err)
	if len(s.Files) > 0 || len(s.Calls) > 0 || hex.EncodeToString(s.Images[0].BuildID) != id {
		t.Errorf("%d files, %d calls", len(s.Files), len(s.Calls))
	}
	for _, r := range s.Routines {
		if r.Symbol == "main" || r.Symbol == "first" {
			t.Errorf("routine %s", r.Symbol)
		}
	}
}

// TestSplitDebugInformationIsSaid: the plan and the recording of a program whose inlined calls are
// in files that are not read say so in one line, however many processes run it. Only the log of -v
// had it, and with --follow-fork no line did.
func TestSplitDebugInformationIsSaid(t *testing.T) {
	program := testenv.CompileC(t, inlining, "-g", "-O2", "-gsplit-dwarf")
	snapshot := filepath.Join(t.TempDir(), "x.wpp")
	for _, args := range [][]string{{"plan", program}, {"-o", snapshot, "--", program},
		{"--follow-fork", "-o", snapshot, "--", program},
		{"--follow-fork", "-o", snapshot, "--", "dash", "-c", `"$0"; "$0"; "$0"`, program}} {
		if _, errs, status := wpptrace(args...); status != 0 ||
			strings.Count(errs, "build without -gsplit-dwarf") != 1 {
			t.Errorf("%s: exit %d: %s", args, status, errs)
		}
	}
	if _, errs, status := wpptrace("-q", "-o", snapshot, "--", program); status != 0 || errs != "" {
		t.Errorf("-q: exit %d: %s", status, errs)
	}
}
