//go:build linux && cgo

package valuetests

import (
	"os"
	"path/filepath"
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
	instructions  float64
	values, paths float64
}

func sizesOf(t testing.TB, s *wpp.Snapshot) sizes {
	t.Helper()
	known, err := values.Count(s)
	if err != nil {
		t.Fatal(err)
	}
	z := sizes{instructions: float64(known.Instructions)}
	for section := range s.SectionsOf(wet.LogKind) {
		data, err := section.Data()
		if err != nil {
			t.Fatal(err)
		}
		z.values += 8 * float64(len(data)) / z.instructions
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
	for name, most := range map[string]float64{"alloca": 0.9, "rep": 1.2, "switch_dense": 0.8,
		"tailcalls": 0.9, "threaded_code": 1.8, "values_one": 0.5} {
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

// BenchmarkSizes records programs as the distribution ships them, and says how many bits an
// executed instruction takes in the file, by values and by paths.
func BenchmarkSizes(b *testing.B) {
	for _, real := range zoo.Reals() {
		b.Run(real.Name, func(b *testing.B) {
			path, err := real.Path()
			if err != nil {
				b.Skip(err)
			}
			file := filepath.Join(b.TempDir(), "run.wpp")
			target := exact.Target{Path: path, Args: real.Args, Env: zoo.Env(),
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
			b.ReportMetric(z.instructions, "instructions")
			b.ReportMetric(z.values, "bits/ins-values")
			b.ReportMetric(z.paths, "bits/ins-paths")
			b.ReportMetric(8*float64(info.Size())/z.instructions, "bits/ins-file")
		})
	}
}
