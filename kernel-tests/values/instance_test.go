//go:build linux && cgo

package valuetests

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
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

// An often is an instruction that ran so often.
type often struct {
	values.Instruction
	times uint64
}

// recordLong records gzip with some 60 million instructions, and returns the file, with the
// instructions that ran most often, the first one of all first.
func recordLong(b *testing.B) (file string, most []often) {
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
	return file, mostRun(b, s)
}

// mostRun are the instructions that ran most often, one of each routine.
func mostRun(b *testing.B, s *wpp.Snapshot) (most []often) {
	b.Helper()
	segments, err := wet.Segments(s, 0)
	if err != nil {
		b.Fatal(err)
	}
	ran, all := map[values.Instruction]uint64{}, uint64(0)
	of := map[int]often{} // by routine
	for i := range segments {
		for _, x := range segments[i].Ran() {
			for addr := range s.Instructions(x.Symbol) {
				at := values.Instruction{Routine: s.Symbols[x.Symbol].Routine, Addr: addr}
				ran[at] += x.Times
				all += x.Times
				if ran[at] > of[at.Routine].times {
					of[at.Routine] = often{at, ran[at]}
				}
			}
		}
	}
	most = slices.SortedFunc(maps.Values(of), func(a, b often) int {
		return cmp.Or(cmp.Compare(b.times, a.times), cmp.Compare(a.Addr, b.Addr))
	})
	most = most[:min(len(most), 5)]
	b.Logf("%d instructions in %d segments; these ran most often: %v", all, len(segments), most)
	return most
}

// BenchmarkInstance asks a file by the command line for one execution of an instruction, each time
// for another one: 100 of them with -benchtime 100x.
func BenchmarkInstance(b *testing.B) {
	file, most := recordLong(b)
	which := rand.New(rand.NewPCG(3, 4))
	var took []time.Duration
	for b.Loop() {
		at := most[len(took)%len(most)]
		command := exec.Command(tracer.Path(), "values", "--csv", "--at", fmt.Sprintf("%#x", at.Addr),
			"--instance", fmt.Sprint(1+which.Uint64N(at.times)), file)
		began := time.Now()
		out, err := command.CombinedOutput()
		took = append(took, time.Since(began))
		if n := strings.Count(string(out), "\n"); err != nil || n < 2 {
			b.Fatalf("%v: %v\n%s", command, err, out)
		}
	}
	slices.Sort(took)
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	b.ReportMetric(ms(took[len(took)/2]), "ms-median")
	b.ReportMetric(ms(took[len(took)-1]), "ms-worst")
}

// BenchmarkOneInstruction asks a file for all executions of an instruction, by 10 million executed
// instructions of all.
func BenchmarkOneInstruction(b *testing.B) {
	file, most := recordLong(b)
	at, times := most[0].Instruction, most[0].times
	s, err := store.ReadFile(file, query.Sections()...)
	if err != nil {
		b.Fatal(err)
	}
	known, err := values.Count(s)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if found := ask(b, file, at); found != times {
			b.Fatalf("%d executions of %d were found", found, times)
		}
	}
	b.ReportMetric(b.Elapsed().Seconds()/float64(b.N)*1e7/float64(known.Instructions),
		"s/10M-instructions")
}

// ask reads a file and returns how many executions of an instruction it has.
func ask(b *testing.B, file string, at values.Instruction) (found uint64) {
	b.Helper()
	s, err := store.ReadParts(file, query.Sections()...)
	if err != nil {
		b.Fatal(err)
	}
	q := &values.Question{Where: &values.Where{At: []values.Instruction{at}}}
	err = values.Each(s, q, func(uint64, *wet.Executed) error {
		found++
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	return found
}
