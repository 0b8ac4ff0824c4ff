package kerneltests

import (
	"io"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"wpptrace/internal/testenv"
	"wpptrace/kernel-tests/zoo"
	"wpptrace/loader/attach"
	"wpptrace/loader/cfg/recovery"
	"wpptrace/loader/image"
	"wpptrace/loader/plan"
	"wpptrace/loader/plan/planner"
	"wpptrace/loader/target"
)

// What a plan must trace of the routines of real programs, by default and with --complete.
const (
	enoughRoutines         = 0.90
	enoughRoutinesComplete = 0.99
)

// planned are the real programs whose plans are held to that.
func planned() []zoo.Real {
	var reals []zoo.Real
	for _, r := range zoo.Reals() {
		switch r.Name {
		case "bash", "python3", "sqlite3", "gzip":
			reals = append(reals, r)
		}
	}
	return reals
}

func TestPlansOfRealPrograms(t *testing.T) {
	for _, real := range planned() {
		t.Run(real.Name, func(t *testing.T) {
			path, err := real.Path()
			if err != nil {
				testenv.Missing(t, err)
			}
			for _, c := range []struct {
				flags []string
				least float64
			}{{nil, enoughRoutines}, {[]string{"--complete"}, enoughRoutinesComplete}} {
				p, err := tracer.Plan(t.Context(), path, c.flags...)
				if err != nil {
					t.Fatal(err)
				}
				if share := p.Share(); share < c.least {
					t.Errorf("%v: %d of %d routines traced, %.2f %%, not %.0f %%", c.flags,
						p.Traced, p.Total, 100*share, 100*c.least)
				}
			}
		})
	}
}

func BenchmarkPlanOfPython(b *testing.B) {
	path := realPath(b, "python3")
	for b.Loop() {
		makePlan(b, path)
	}
}

// 10,000 probes are to stand within 0.2 s. Each waits for every fork under way on the machine, so
// that the clock on the wall says little where others are at work: the test goes by processor time,
// and has three times that; the benchmark takes the wall's.
func TestProbesStandSoon(t *testing.T) {
	const most = 600 * time.Millisecond
	var before, after unix.Rusage
	probes := attachBash(t, func(attach func()) {
		rusage(t, &before)
		attach()
		rusage(t, &after)
	})
	took := time.Duration(after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() -
		before.Stime.Nano())
	if per := 10_000 * took / time.Duration(probes); per > most {
		t.Errorf("%d probes took %v, %v for 10,000", probes, took, per)
	}
}

func rusage(t *testing.T, u *unix.Rusage) {
	t.Helper()
	if err := unix.Getrusage(unix.RUSAGE_SELF, u); err != nil {
		t.Fatal(err)
	}
}

func BenchmarkAttachToBash(b *testing.B) {
	var probes int
	var took time.Duration
	for b.Loop() {
		probes += attachBash(b, func(attach func()) {
			began := time.Now()
			attach()
			took += time.Since(began)
		})
	}
	b.ReportMetric(float64(took.Milliseconds())*10_000/float64(probes), "ms/10k-probes")
}

// attachBash has the probes put, by measure, into a bash that waits for its input, and says how
// many they are.
func attachBash(t testing.TB, measure func(attach func())) (probes int) {
	t.Helper()
	path := realPath(t, "bash")
	im, p := makePlan(t, path)
	bash := exec.CommandContext(t.Context(), path, "--norc", "-s")
	input, err := bash.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := bash.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := bash.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		input.Close()
		if err := bash.Wait(); err != nil {
			t.Error(err)
		}
	}()
	// Start returns in the midst of exec, when nothing need be mapped yet.
	if _, err := io.WriteString(input, "echo\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(output, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	process, err := target.Open(bash.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	defer process.Close()
	exe, err := process.Executable()
	if err != nil {
		t.Fatal(err)
	}
	defer exe.Close()
	s, err := attach.Load(process, im, p, attach.Options{Ring: attach.DefaultRing})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	measure(func() { err = s.Attach(exe) })
	if err != nil {
		t.Fatal(err)
	}
	return len(p.Sites)
}

func realPath(t testing.TB, name string) string {
	t.Helper()
	i := slices.IndexFunc(zoo.Reals(), func(r zoo.Real) bool { return r.Name == name })
	path, err := zoo.Reals()[i].Path()
	if err != nil {
		testenv.Missing(t, err)
	}
	return path
}

func makePlan(t testing.TB, path string) (*image.Image, *plan.Plan) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		t.Fatal(err)
	}
	im, err := image.Open(f, size, path)
	if err != nil {
		t.Fatal(err)
	}
	program, err := recovery.Recover(im)
	if err != nil {
		t.Fatal(err)
	}
	p, err := planner.Make(program, planner.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return im, p
}
