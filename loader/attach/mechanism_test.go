package attach

import (
	"errors"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"wpptrace/bpf/wire"
	"wpptrace/internal/remedy"
	"wpptrace/internal/testenv"
	"wpptrace/kernel-tests/zoo"
	"wpptrace/loader/uprobe"
)

// However probes go in, every thread of the process is recorded, as much, and nobody else.
func TestWays(t *testing.T) {
	builder, err := zoo.NewBuilder(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	path, err := builder.Build(t.Context(), zoo.Named("threads"),
		zoo.Flavour{Compiler: "gcc", Opt: "-O2", PIE: true})
	if err != nil {
		t.Fatal(err)
	}
	const threads = 8 // at least
	var first []uint64
	for mechanism := uprobe.Events; mechanism <= uprobe.Detect(); mechanism++ {
		// a newer kernel has the older ones' too
		hits := hitsOfThreads(t, mechanism, path)
		if first == nil {
			first = hits
		}
		if len(hits) < threads || !slices.Equal(hits, first) {
			t.Errorf("%v: the threads make %d hits, not %d", mechanism, hits, first)
		}
	}
}

// hitsOfThreads lists how many hits each thread of a program makes. Meanwhile somebody else runs it
// too.
func hitsOfThreads(t *testing.T, mechanism uprobe.Mechanism, path string) (list []uint64) {
	t.Helper()
	s := loadWith(t, Options{Ring: 1 << 20, Mechanism: mechanism}, path)
	if err := errors.Join(s.session.Attach(s.exe), s.session.Enable(true)); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(path).CombinedOutput(); err != nil {
		t.Fatalf("somebody else's: %v\n%s", err, out)
	}
	s.Release()
	<-s.Done()
	hits := map[uint32]uint64{}
	eachWaiting(t, s.session, func(b wire.Batch) { hits[b.Thread] += b.Received() })
	if status, err := s.ExitStatus(); status != 0 || err != nil {
		t.Errorf("%v: the program ended with status %d, %v", mechanism, status, err)
	}
	if err := s.session.Close(); err != nil {
		t.Error(err)
	}
	for _, n := range hits {
		list = append(list, n)
	}
	slices.Sort(list)
	return list
}

// A process that was stopped does not wait to go on until kernels that take probes out slowly have
// done so, or its events have been read.
func TestDetachLetsGo(t *testing.T) {
	s := loadWith(t, Options{Ring: os.Getpagesize(), Hold: true}, "/bin/bash", "-c",
		"for ((i = 0; i < 50; i++)); do x=$i; done")
	if err := errors.Join(s.session.Attach(s.exe), s.session.Enable(true)); err != nil {
		t.Fatal(err)
	}
	s.Release()
	testenv.Eventually(t, func() bool {
		held, err := s.session.stops.hold()
		if err != nil || !s.Process.Alive() {
			t.Fatalf("it was not stopped: %v", err)
		}
		return held
	}, "it is stopped")
	if err := s.session.Detach(); err != nil {
		t.Fatal(err)
	}
	const patience = time.Minute
	select {
	case <-s.Done():
	case <-time.After(patience):
		t.Error("it is stopped still")
	}
	if status, err := s.ExitStatus(); status != 0 || err != nil {
		t.Errorf("exit status %d, %v", status, err)
	}
}

// A kernel that takes probes out one by one gets few.
func TestTooManyProbes(t *testing.T) {
	s := load(t, "/bin/bash", "-c", ":")
	_, err := Load(s.Process, s.session.images.executable().image, s.session.images.plan,
		Options{Ring: 1 << 20, Mechanism: uprobe.Events})
	if marked := (*remedy.Error)(nil); !errors.As(err, &marked) ||
		marked.Kind != remedy.FewerProbes {
		t.Errorf("all of bash: %v", err)
	}
}
