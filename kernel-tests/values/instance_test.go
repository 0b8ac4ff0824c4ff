//go:build linux && cgo

package valuetests

import (
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"wpptrace/compress/wet"
	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/store"
	"wpptrace/kernel-tests/exact"
	"wpptrace/kernel-tests/zoo"
	"wpptrace/query"
	"wpptrace/query/values"
)

// recordLong records gzip with some 60 million instructions, and returns the file, with the
// instruction that ran most often and how often that was.
func recordLong(b *testing.B) (file string, most values.Instruction, times uint64) {
	b.Helper()
	reals := zoo.Reals()
	path, err := reals[slices.IndexFunc(reals,
		func(r zoo.Real) bool { return r.Name == "gzip" })].Path()
	if err != nil {
		b.Skip(err)
	}
	words, text := rand.New(rand.NewPCG(1, 2)), []byte(nil)
	for len(text) < 130_000 {
		for range 2 + words.IntN(5) {
			text = append(text, byte('a'+words.ExpFloat64()*4))
		}
		text = append(text, ' ')
	}
	file = filepath.Join(b.TempDir(), "run.wpp")
	target := exact.Target{Path: path, Args: []string{"-9", "-n", "-c"}, Env: zoo.Env(),
		Stdin: text, Dir: b.TempDir()}
	if _, err := tracer.ValuesTo(b.Context(), file, target, "-F", "."); err != nil {
		b.Fatal(err)
	}
	s, err := store.ReadFile(file, query.Sections()...)
	if err != nil {
		b.Fatal(err)
	}
	most, times = mostRun(b, s)
	return file, most, times
}

// mostRun is the instruction that ran most often.
func mostRun(b *testing.B, s *wpp.Snapshot) (most values.Instruction, times uint64) {
	b.Helper()
	segments, err := wet.Segments(s, 0)
	if err != nil {
		b.Fatal(err)
	}
	ran, all := map[values.Instruction]uint64{}, uint64(0)
	for i := range segments {
		for _, x := range segments[i].Ran() {
			for addr := range s.Instructions(x.Symbol) {
				at := values.Instruction{Routine: s.Symbols[x.Symbol].Routine, Addr: addr}
				ran[at] += x.Times
				all += x.Times
				if ran[at] > times {
					most, times = at, ran[at]
				}
			}
		}
	}
	b.Logf("%d instructions in %d segments; one ran %d times", all, len(segments), times)
	return most, times
}

// BenchmarkInstance asks a file for one execution of an instruction, each time for another one.
func BenchmarkInstance(b *testing.B) {
	file, at, times := recordLong(b)
	which, worst := rand.New(rand.NewPCG(3, 4)), time.Duration(0)
	for b.Loop() {
		began := time.Now()
		n := 1 + which.Uint64N(times)
		if found := ask(b, file, at, n); found != 1 {
			b.Fatalf("execution %d of %d: %d were found", n, times, found)
		}
		worst = max(worst, time.Since(began))
	}
	b.ReportMetric(float64(worst.Milliseconds()), "ms-worst")
}

// BenchmarkOneInstruction asks a file for all executions of an instruction, by 10 million executed
// instructions of all.
func BenchmarkOneInstruction(b *testing.B) {
	file, at, times := recordLong(b)
	s, err := store.ReadFile(file, query.Sections()...)
	if err != nil {
		b.Fatal(err)
	}
	known, err := values.Count(s)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if found := ask(b, file, at, 0); found != times {
			b.Fatalf("%d executions of %d were found", found, times)
		}
	}
	b.ReportMetric(b.Elapsed().Seconds()/float64(b.N)*1e7/float64(known.Instructions),
		"s/10M-instructions")
}

// ask reads a file and returns how many executions of an instruction it has: with a number, or all.
func ask(b *testing.B, file string, at values.Instruction, instance uint64) (found uint64) {
	b.Helper()
	s, err := store.ReadParts(file, query.Sections()...)
	if err != nil {
		b.Fatal(err)
	}
	q := &values.Question{Where: &values.Where{At: []values.Instruction{at}}, Instance: instance}
	err = values.Each(s, q, func(uint64, *wet.Executed) error {
		found++
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	return found
}
