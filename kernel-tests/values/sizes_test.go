//go:build linux && cgo

package valuetests

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"wpptrace/compress/coding"
	"wpptrace/compress/wet"
	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/store"
	"wpptrace/kernel-tests/exact"
	"wpptrace/kernel-tests/truth/states"
	"wpptrace/kernel-tests/zoo"
	"wpptrace/query"
	"wpptrace/query/values"
)

// sizes are the bits of a snapshot for each executed instruction: of values, and of paths.
type sizes struct {
	instructions        float64
	values, paths, file float64
}

func sizesOf(t testing.TB, s *wpp.Snapshot) sizes {
	t.Helper()
	known, err := values.Count(s)
	if err != nil {
		t.Fatal(err)
	}
	z := sizes{instructions: float64(known.Instructions)}
	for _, kind := range []wpp.SectionKind{wet.CommonKind, wet.HeadKind, wet.LogKind} {
		for section := range s.SectionsOf(kind) {
			data, err := section.Data()
			if err != nil {
				t.Fatal(err)
			}
			z.values += 8 * float64(len(data)) / z.instructions
		}
	}
	for i := range s.Threads {
		g, err := s.Threads[i].Grammar.InMemory()
		if err != nil {
			t.Fatal(err)
		}
		z.paths += 8 * float64(len(coding.Encode(g.Bodies()))) / z.instructions
	}
	return z
}

// TestSizes: what values take in a file, of runs of a few thousand instructions each.
func TestSizes(t *testing.T) {
	for name, most := range map[string]float64{"alloca": 0.45, "rep": 0.6, "switch_dense": 0.35,
		"tailcalls": 0.45, "threaded_code": 0.95, "values_one": 0.25} {
		s, err := states.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		snapshot, _ := record(t, s)
		z := sizesOf(t, snapshot)
		t.Logf("%-14s %.0f instructions: values %.3f bits each, paths %.3f", name, z.instructions,
			z.values, z.paths)
		if z.values > most {
			t.Errorf("%s: values take %.3f bits an instruction, more than %.2f", name, z.values,
				most)
		}
	}
}

// TestSizesOfCallbacks: registers that code which is not traced has for itself, when it calls a
// routine, take nothing.
func TestSizesOfCallbacks(t *testing.T) {
	b, err := zoo.NewBuilder(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	path, err := b.Build(t.Context(), zoo.Named("callbacks"),
		zoo.Flavour{Compiler: "gcc", Opt: "-O2"})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "run.wpp")
	target := exact.Target{Path: path, Env: zoo.Env(), FixedAddresses: true}
	if _, err := tracer.ValuesTo(t.Context(), file, target, "-F", "."); err != nil {
		t.Fatal(err)
	}
	s, err := store.ReadFile(file, query.Sections()...)
	if err != nil {
		t.Fatal(err)
	}
	if z := sizesOf(t, s); z.values > 0.48 {
		t.Errorf("values take %.3f bits an instruction, more than 0.48", z.values)
	}
}

// BenchmarkSizes records programs with work of some million instructions, most as the distribution
// ships them, and says how many bits an executed instruction takes in the file, by values and by
// paths. -v has the medians.
func BenchmarkSizes(b *testing.B) {
	var all []sizes
	for _, real := range measured(b) {
		b.Run(real.Name, func(b *testing.B) {
			path := real.Command
			if !filepath.IsAbs(path) {
				var err error
				if path, err = real.Path(); err != nil {
					b.Skip(err)
				}
			}
			file := filepath.Join(b.TempDir(), "run.wpp")
			target := exact.Target{Path: path, Args: real.Args,
				Env:   append(zoo.Env(), "PYTHONHASHSEED=1"),
				Stdin: []byte(real.Stdin), Dir: b.TempDir()}
			for b.Loop() {
				if _, err := tracer.ValuesTo(b.Context(), file, target, "-F", "."); err != nil {
					b.Fatal(err)
				}
			}
			s, err := store.ReadFile(file, query.Sections()...)
			if err != nil {
				b.Fatal(err)
			}
			info, err := os.Stat(file)
			if err != nil {
				b.Fatal(err)
			}
			z := sizesOf(b, s)
			z.file = 8 * float64(info.Size()) / z.instructions
			b.ReportMetric(z.instructions, "instructions")
			b.ReportMetric(z.values, "bits/ins-values")
			b.ReportMetric(z.paths, "bits/ins-paths")
			b.ReportMetric(z.file, "bits/ins-file")
			all = append(all, z)
		})
	}
	if len(all) == 0 {
		return
	}
	middle := func(of func(sizes) float64) float64 {
		var list []float64
		for _, z := range all {
			list = append(list, of(z))
		}
		slices.Sort(list)
		return (list[(len(list)-1)/2] + list[len(list)/2]) / 2
	}
	b.Logf("medians of %d programs, bits an instruction: values %.3f, with paths %.3f, files %.3f",
		len(all), middle(func(z sizes) float64 { return z.values }),
		middle(func(z sizes) float64 { return z.values + z.paths }),
		middle(func(z sizes) float64 { return z.file }))
}

// What the interpreters that are measured do.
const (
	luaSort = `local t, r = {}, 1
for i = 1, 4000 do r = (r * 16807) % 2147483647; t[i] = r end
table.sort(t, function(a, b) return a < b end) print(t[1])`
	luaFloats = `local s, x = {}, 0.5
for i = 1, 4000 do
	x = x * 3.7 * (1 - x)
	s[#s % 50 + 1] = ("%5.3f %d"):format(x, i):gsub("1", "one")
end
print(#table.concat(s))`
	pythonWork = `d = {}
for i in range(4000):
    d.setdefault("k%d" % (i * 7919 % 997), []).append(i)
print(sum(len(v) * max(v) for v in d.values()), sorted(d)[3])`
	bashWork = `for i in {1..400}; do
	x=$((i * 7 % 13)); case $x in *9*) y=${x%%9*} ;; *) y=a${y:0:5} ;; esac
done
echo ${y/a/b}`
	sqlWork = `create table t(a integer primary key, b text, c real); create index i on t(b);
with recursive n(x) as (select 1 union all select x + 1 from n where x < 1000)
	insert into t select x, 'name' || ((x * 7919) % 1001), x * 1.5 from n;
select count(*), sum(c), max(b) from t where b between 'name1' and 'name3' and a % 3 = 1;
select t1.a from t t1 join t t2 on t1.b = t2.b where t2.a < 200 order by t1.c desc;
update t set c = c + 1 where a % 5 = 0;`
)

// measured are programs with work to do.
func measured(b *testing.B) []zoo.Real {
	b.Helper()
	var text strings.Builder
	for i := range 4000 {
		fmt.Fprintln(&text, "line", i*7919%10007, "of", i%97)
	}
	list := []zoo.Real{
		{Name: "gzip", Command: "gzip", Args: []string{"-9", "-n", "-c"}, Stdin: text.String()},
		{Name: "sort", Command: "sort", Args: []string{"--parallel=1"}, Stdin: text.String()},
		{Name: "sed", Command: "sed", Args: []string{"-n", `s/\([0-9]\)5/<\1>/gp`},
			Stdin: text.String()},
		{Name: "bash", Command: "bash", Args: []string{"--norc", "--noprofile", "-c", bashWork}},
		{Name: "lua", Command: "lua5.1", Args: []string{"-e", luaSort}},
		{Name: "lua-floats", Command: "lua5.1", Args: []string{"-e", luaFloats}},
		{Name: "python3", Command: "python3", Args: []string{"-S", "-s", "-B", "-c", pythonWork}},
	}
	for i := range list {
		list[i].Package = list[i].Command
	}
	if path := sqlite(b); path != "" {
		list = append(list, zoo.Real{Name: "sqlite3", Command: path, Args: []string{sqlWork}})
	}
	return list
}

// sqlite builds a program that has sqlite3 in it, and executes its argument; "": there is no
// library to build it of.
func sqlite(b *testing.B) (program string) {
	b.Helper()
	const source = `#include <sqlite3.h>
int main(int n, char **of) {
	sqlite3 *db;
	return sqlite3_open(":memory:", &db) || sqlite3_exec(db, of[1], 0, 0, 0);
}`
	program = filepath.Join(b.TempDir(), "sqlite")
	gcc := exec.CommandContext(b.Context(), "gcc", "-O2", "-o", program, "-xc", "-", "-xnone",
		"-l:libsqlite3.a", "-lm", "-lz")
	gcc.Stdin = strings.NewReader(source)
	if out, err := gcc.CombinedOutput(); err != nil {
		b.Logf("sqlite3 is left out: %v: %s", err, out)
		return ""
	}
	return program
}
