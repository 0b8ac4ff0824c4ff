package planner_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"wpptrace/internal/testenv"
	"wpptrace/loader/cfg"
	"wpptrace/loader/cfg/recovery"
	"wpptrace/loader/image"
	"wpptrace/loader/plan"
	"wpptrace/loader/plan/planner"
)

// compile builds a program from C, or from C++ when the flags begin with -xc++, and recovers its
// routines.
func compile(t testing.TB, source string, flags ...string) *cfg.Program {
	t.Helper()
	in := filepath.Join(t.TempDir(), "in.c")
	if err := os.WriteFile(in, []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	return build(t, in, flags...)
}

// compileFile builds a program of testdata, and recovers its routines.
func compileFile(t testing.TB, name string, flags ...string) *cfg.Program {
	t.Helper()
	return build(t, filepath.Join("testdata", name), flags...)
}

// build compiles and links a file, and recovers the routines of the program.
func build(t testing.TB, in string, flags ...string) *cfg.Program {
	t.Helper()
	out := filepath.Join(t.TempDir(), "program")
	compiler := "gcc"
	if len(flags) > 0 && flags[0] == "-xc++" {
		compiler = "g++"
	}
	args := append(flags[:len(flags):len(flags)], "-w", "-o", out, in)
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
	p, err := recovery.Recover(im)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func planned(t testing.TB, p *cfg.Program, o planner.Options) *plan.Plan {
	t.Helper()
	s, pl, err := planner.Find(p, o)
	if err != nil {
		t.Fatal(err)
	}
	searches.Store(pl, s)
	t.Cleanup(func() { searches.Delete(pl) })
	return pl
}

var searches sync.Map // by plan: the *planner.Search that it was made of

// searchOf is what a plan of planned was made of.
func searchOf(p *plan.Plan) *planner.Search {
	s, _ := searches.Load(p)
	return s.(*planner.Search)
}

// withoutProbe takes the probe off a block.
func withoutProbe(p *plan.Plan, r *plan.Routine, block int) {
	searchOf(p).Without(p, r.ID, block)
}

// routine returns the routine of that symbol, which has to be traced.
func routine(t testing.TB, p *plan.Plan, symbol string) *plan.Routine {
	t.Helper()
	for _, r := range p.Routines {
		if r.Symbol == symbol {
			if !r.Traced() {
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
