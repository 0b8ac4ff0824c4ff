package kerneltests

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"wpptrace/internal/testenv"
	"wpptrace/kernel-tests/exact"
	"wpptrace/kernel-tests/zoo"
)

// cyclic is a program at random that does the same in each of its cycles: some of its routines are
// called all the time, most of them seldom, one with another or without, from loops and from
// branches. It never ends, or after so many cycles.
func cyclic(random *rand.Rand) string {
	return cyclicRoutines(random) + `
int main(int argc, char **argv)
{
	if (write(1, "\n", 1) != 1)
		return 1;
	for (long left = argc > 1 ? atol(argv[1]) : -1; left; left--) {
		unsigned x = 12345;
		for (unsigned i = 0; i < sizeof(order); i++) {
			x = x * 1103515245 + 12345;
			all[order[i]](x >> 16 & 63);
		}
	}
	return 0;
}
`
}

// cyclicRoutines are the routines, all, and which of them are called in a cycle, order.
func cyclicRoutines(random *rand.Rand) string {
	const routines, calls = 150, 400
	var c strings.Builder
	c.WriteString("#include <stdlib.h>\n#include <unistd.h>\nstatic volatile unsigned sink;\n")
	for i := range routines {
		fmt.Fprintf(&c, "__attribute__((noinline)) static unsigned f%d(unsigned x)\n{\n", i)
		for range 1 + random.IntN(4) {
			bit := 1 << random.IntN(6)
			switch callee := random.IntN(routines); {
			case callee < i && random.IntN(2) == 0: // no recursion
				fmt.Fprintf(&c, "\tif (x & %d) sink += f%d(x >> 1); else sink ^= x;\n", bit, callee)
			case random.IntN(3) == 0:
				fmt.Fprintf(&c, "\tfor (unsigned i = 0; i < (x & 3); i++) sink += i & %d ? x : "+
					"1;\n",
					1+random.IntN(2))
			default:
				fmt.Fprintf(&c, "\tif (x & %d) sink += %d; else sink *= 3;\n", bit,
					random.IntN(100))
			}
		}
		fmt.Fprintf(&c, "\treturn x * %d + 1;\n}\n", 2*random.IntN(50)+1)
	}
	fmt.Fprintf(&c, "static unsigned (*const all[])(unsigned) = {")
	for i := range routines {
		fmt.Fprintf(&c, "f%d, ", i)
	}
	c.WriteString("};\nstatic const unsigned char order[] = {")
	for range calls {
		at := random.IntN(8)
		if random.IntN(100) == 0 {
			at = random.IntN(routines)
		}
		fmt.Fprintf(&c, "%d, ", at)
	}
	c.WriteString("};\n")
	return c.String()
}

// TestWindowsAreExact: of a process at work, whose cold probes stand between windows and whose hot
// ones come and go, each window is a contiguous part of what single-stepping shows, and what lies
// between two is marked as a gap.
func TestWindowsAreExact(t *testing.T) {
	if built() != "" {
		t.Skip("its program is made at random, here")
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for i, opt := range []string{"-O0", "-O2"} {
		t.Run(opt, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), patience())
			defer cancel()
			code := cyclic(rand.New(rand.NewPCG(seed, uint64(i))))
			path := testenv.CompileC(t, code, opt)
			cycle := stepCycle(t, ctx, path)
			r, stood := recordWindows(t, ctx, path)
			if r.Stat.Windows < 3 || r.Stat.Lost > 0 || r.Stat.Anomalies > 0 ||
				len(r.Streams) != 1 {
				t.Fatalf("%d windows, %d events lost, %d anomalies, %d threads", r.Stat.Windows,
					r.Stat.Lost, r.Stat.Anomalies, len(r.Streams))
			}
			slices.Sort(stood)
			if few, many := stood[0], stood[len(stood)-1]; few == 0 || few == many {
				t.Errorf("from %d to %d probes stood: cold ones are to stay, hot ones to come "+
					"and go",
					few, many)
			}
			checkPieces(t, r, cycle)
		})
	}
}

// recordWindows records a program that never ends in windows, and counts how many probes stood at
// some moments after the first window.
func recordWindows(t *testing.T, ctx context.Context, path string) (r *exact.Record, stood []int) {
	t.Helper()
	s := startServer(t, ctx, path)
	defer s.cmd.Wait()
	defer s.cmd.Process.Kill()
	if _, err := s.output.ReadString('\n'); err != nil { // it runs
		t.Fatal(err)
	}
	pristine := s.text(t)
	file := filepath.Join(t.TempDir(), "windows.wpp")
	recording, err := tracer.Attach(ctx, s.cmd.Process.Pid, file, "--overhead", "20", "--window",
		"5ms")
	if err != nil {
		t.Fatal(err)
	}
	const settling, looks, pause = 1500 * time.Millisecond, 600, 5 * time.Millisecond
	time.Sleep(settling)
	for range looks {
		n, text := 0, s.text(t)
		for i := range text {
			if text[i] != pristine[i] {
				n++
			}
		}
		stood = append(stood, n)
		time.Sleep(pause)
	}
	if err := recording.Detach(); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(s.text(t), pristine) {
		t.Error("text differs after detaching")
	}
	if r, err = tracer.Read(ctx, file); err != nil {
		t.Fatal(err)
	}
	return r, stood
}

// stepCycle single-steps what the program does in a cycle.
func stepCycle(t *testing.T, ctx context.Context, path string) (cycle []uint64) {
	t.Helper()
	step := func(cycles int) []uint64 {
		target := exact.Target{Path: path, Args: []string{fmt.Sprint(cycles)}, Env: zoo.Env()}
		want, err := target.Truth(ctx, exact.Expect{Limit: most})
		if err != nil {
			t.Fatal(err)
		}
		return want.Threads[0].Insns
	}
	two, three := step(2), step(3)
	same := 0 // until the shorter one ends, which is at the end of a cycle
	for same < len(two) && two[same] == three[same] {
		same++
	}
	long := len(three) - len(two)
	if long <= 0 || same < long {
		t.Fatalf("%d and %d instructions in two and in three cycles, the first %d are the same",
			len(two), len(three), same)
	}
	return three[same-long : same]
}

// checkPieces looks for what a record has between two gaps in what the program does for ever.
func checkPieces(t *testing.T, r *exact.Record, cycle []uint64) {
	t.Helper()
	cycle = slices.DeleteFunc(slices.Clone(cycle), func(pc uint64) bool {
		routine, ok := r.Routines.Find(pc)
		return !ok || !routine.Traced
	})
	insns := r.Streams[0].Insns
	from, pieces := 0, 0
	piece := func(to int) {
		if to == from {
			return
		}
		if pieces++; !goesRound(insns[from:to], cycle) {
			t.Errorf("instructions %d to %d are not what the program does", from, to)
		}
		from = to
	}
	for _, mark := range r.Streams[0].Marks {
		if mark.Kind == "gap" {
			piece(mark.Index)
		}
	}
	piece(len(insns))
	t.Logf("%d pieces of %d windows, %d instructions, %d in a cycle", pieces, r.Stat.Windows,
		len(insns), len(cycle))
	if uint64(pieces) < r.Stat.Windows-1 {
		t.Errorf("%d pieces of %d windows", pieces, r.Stat.Windows)
	}
}

// goesRound reports whether some instructions are those of a cycle from anywhere in it on, round
// and round.
func goesRound(insns, cycle []uint64) bool {
	for at, pc := range cycle {
		if pc != insns[0] {
			continue
		}
		i := 0
		for i < len(insns) && insns[i] == cycle[(at+i)%len(cycle)] {
			i++
		}
		if i == len(insns) {
			return true
		}
	}
	return false
}
