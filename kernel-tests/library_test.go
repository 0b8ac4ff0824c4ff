package kerneltests

import (
	"os/exec"
	"path/filepath"
	"testing"

	"wpptrace/internal/testenv"
	"wpptrace/kernel-tests/exact"
	"wpptrace/kernel-tests/zoo"
)

// libraryCases are every fourth program of the zoo as a shared library, with one optimisation each;
// or all of them with both.
func libraryCases() (cases []zoo.Case) {
	for i, opt := range []string{"-O2", "-O0"} {
		for j, p := range zoo.Programs() {
			if matrix() || (i+j)%8 == 0 && p.Tags&(zoo.Long|zoo.Longest) == 0 {
				cases = append(cases,
					zoo.Case{Program: p,
						Flavour: zoo.Flavour{Compiler: "gcc", Opt: opt, Shared: true}})
			}
		}
	}
	return cases
}

// Programs of the zoo as shared libraries, which an executable calls: their code is traced with
// --lib, from the moment that it is mapped.
func TestLibrariesAreExact(t *testing.T) {
	builder, err := newBuilder()
	if err != nil {
		t.Fatal(err)
	}
	table := newTable(t)
	for _, c := range libraryCases() {
		p, f := c.Program, c.Flavour
		t.Run(p.Name+"/"+f.String(), func(t *testing.T) {
			t.Parallel()
			path := build(t, builder, c)
			target := targetOf(c, path, t.TempDir())
			if why, ok := limits[p.Name]; ok {
				proveLimit(t, target, expectation(c), why)
				return
			}
			prove(t, table, target, expectation(c), 0, 0)
		})
	}
}

// An executable and its libraries call each other: callbacks, exceptions and jumps through and out
// of each other, tail calls through linkage stubs, handlers, threads, a library that is opened and
// closed, all of it bound lazily or at once.
func TestCrossingLibrariesIsExact(t *testing.T) {
	builder, err := zoo.NewBuilder(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	table := newTable(t)
	flavours := []zoo.Flavour{{Compiler: "gcc", Opt: "-O2"},
		{Compiler: "gcc", Opt: "-O1", Extra: "-fno-plt"}}
	if matrix() {
		flavours = append(flavours, zoo.Flavour{Compiler: "gcc", Opt: "-O0"},
			zoo.Flavour{Compiler: "gcc", Opt: "-O3", Extra: "-fcf-protection=full"})
	}
	for _, f := range flavours {
		t.Run(f.String(), func(t *testing.T) {
			t.Parallel()
			path, libraries, err := builder.BuildCrossing(t.Context(), f)
			if err != nil {
				t.Fatal(err)
			}
			sets := [][]string{libraries, libraries[:1]}
			if f.Extra != "-fno-plt" {
				// what jumps into external code by a call that is not announced may be
				// taken for what comes after it in its place
				sets = append(sets, libraries[1:])
			}
			for _, traced := range sets {
				target := exact.Target{Path: path, Env: zoo.Env(), Dir: t.TempDir(),
					Libraries: traced}
				prove(t, table, target, exact.Expect{Cut: true, Limit: most}, 0, 0)
			}
		})
	}
}

// Libraries of the distribution, in programs of the distribution. Where libc.so.6 is traced, all
// that it calls back comes from routines that are.
func TestRealLibrariesAreExact(t *testing.T) {
	table := newTable(t)
	type call struct {
		program, library string
		args             []string
	}
	calls := []call{
		{"sqlite3", "libsqlite3.so.0", []string{":memory:", "select 3 union select 1 order by 1;"}},
		{"true", "libc.so.6", nil},
	}
	if matrix() {
		// side by side with the other: the kernel looks at all that map the library for each probe
		// of either
		calls = append(calls, call{"gzip", "libc.so.6", []string{"-cn", "/etc/shells"}})
	}
	for _, c := range calls {
		t.Run(c.program+"/"+c.library, func(t *testing.T) {
			t.Parallel()
			path, err := exec.LookPath(c.program)
			if err != nil {
				testenv.Missing(t, err)
			}
			library, err := filepath.EvalSymlinks(filepath.Join("/usr/lib/x86_64-linux-gnu",
				c.library))
			if err != nil {
				testenv.Missing(t, err)
			}
			target := exact.Target{Path: path, Args: c.args,
				Env: append(zoo.Env(), "HOME=/nonexistent"), Dir: t.TempDir(), FixedAddresses: true,
				Libraries: []string{filepath.Base(library)}}
			prove(t, table, target, exact.Expect{Limit: 10 * most}, 0, 0)
		})
	}
}
