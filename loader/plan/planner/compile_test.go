package plan_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"wpptrace/internal/testenv"
	"wpptrace/loader/cfg"
	"wpptrace/loader/image"
	"wpptrace/loader/plan"
)

// compile builds a program from C, or from C++ when the flags say -xc++, and recovers its routines.
func compile(t testing.TB, source string, flags ...string) *cfg.Program {
	t.Helper()
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in.c"), filepath.Join(dir, "program")
	if err := os.WriteFile(in, []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	compiler := "gcc"
	if len(flags) > 0 && flags[0] == "-xc++" {
		compiler = "g++"
	}
	args := append(flags, "-w", "-o", out, in)
	if b, err := exec.Command(compiler, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", compiler, strings.Join(args, " "), err, b)
	}
	return recovered(t, out)
}

// recovered recovers the routines of the file at path.
func recovered(t testing.TB, path string) *cfg.Program {
	t.Helper()
	im, err := image.OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	defer im.Close()
	p, err := cfg.Recover(im)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func planned(t testing.TB, p *cfg.Program, o plan.Options) *plan.Plan {
	t.Helper()
	pl, err := plan.Make(p, o)
	if err != nil {
		t.Fatal(err)
	}
	return pl
}

// routine returns the routine of that symbol, which has to be observed.
func routine(t testing.TB, p *plan.Plan, symbol string) *plan.Routine {
	t.Helper()
	for _, r := range p.Routines {
		if r.Symbol == symbol {
			if !r.Observed() {
				t.Fatalf("%s is left out: %s", symbol, r.LeftOut)
			}
			return r
		}
	}
	t.Fatalf("no routine %s", symbol)
	return nil
}

// system are programs of the machine to prove plans on; those that are not installed are passed
// over.
func system(t testing.TB) (paths []string) {
	list := []string{"/bin/bash", "/bin/gzip", "/usr/bin/sqlite3", "/usr/bin/python3"}
	if testing.Short() {
		list = list[:2]
	}
	for _, path := range list {
		if testenv.Have(t, path) {
			paths = append(paths, path)
		}
	}
	return paths
}
