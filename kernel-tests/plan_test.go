package kerneltests

import (
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"wpptrace/kernel-tests/zoo"
	"wpptrace/loader/attach"
	"wpptrace/loader/cfg"
	"wpptrace/loader/image"
	"wpptrace/loader/plan"
	"wpptrace/loader/target"
)

// What a plan must observe of the routines of real programs, by default and with --complete.
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
				t.Skip(err)
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
					t.Errorf("%v: %d of %d routines observed, %.2f %%, not %.0f %%", c.flags, p.Observed, p.Total, 100*share, 100*c.least)
				}
			}
		})
	}
}

// The plan of python3 takes about a second alone on two slow cores; another machine, or a busy one, is given four times that.
func TestPlanOfPythonIsFast(t *testing.T) {
	const most = 6 * time.Second
	path := pythonPath(t)
	began := time.Now()
	makePlan(t, path)
	if took := time.Since(began); took > most {
		t.Errorf("took %v, more than %v", took, most)
	}
}

func BenchmarkPlanOfPython(b *testing.B) {
	path := pythonPath(b)
	for b.Loop() {
		makePlan(b, path)
	}
}

// Some 100,000 probes of python3 are put in; 10,000 are to stand within 0.2 s, and a busy machine is given five times that.
func TestProbesStandSoon(t *testing.T) {
	const most = time.Second / 10_000 // a probe
	probes, took := attachPython(t)
	if took > time.Duration(probes)*most {
		t.Errorf("%d probes stood after %v, %v for 10,000", probes, took, 10_000*took/time.Duration(probes))
	}
}

func BenchmarkAttachToPython(b *testing.B) {
	var probes int
	var took time.Duration
	for b.Loop() {
		n, d := attachPython(b)
		probes, took = probes+n, took+d
	}
	b.ReportMetric(float64(took.Milliseconds())*10_000/float64(probes), "ms/10k-probes")
}

// attachPython puts the probes into a python3 that waits for its input, and says how many and how long it took.
func attachPython(t testing.TB) (probes int, took time.Duration) {
	t.Helper()
	im, p := makePlan(t, pythonPath(t))
	python := exec.CommandContext(t.Context(), pythonPath(t), "-I", "-S", "-c", "input()")
	input, err := python.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := python.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		input.Close()
		_ = python.Wait() // it complains of the end of its input
	}()
	process, err := target.Open(python.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	defer process.Close()
	exe, err := process.Executable()
	if err != nil {
		t.Fatal(err)
	}
	defer exe.Close()
	s, err := attach.Load(process, im, p, attach.DefaultRing)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	began := time.Now()
	if err := s.Attach(exe); err != nil {
		t.Fatal(err)
	}
	return len(p.Sites), time.Since(began)
}

func pythonPath(t testing.TB) string {
	t.Helper()
	for _, r := range zoo.Reals() {
		if r.Name != "python3" {
			continue
		}
		path, err := r.Path()
		if err != nil {
			t.Skip(err)
		}
		return path
	}
	t.Fatal("python3 is not in the zoo")
	return ""
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
	program, err := cfg.Recover(im)
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.Make(program, plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return im, p
}
