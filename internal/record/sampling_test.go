package record

import (
	"errors"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"wpptrace/internal/record/sample"
	"wpptrace/internal/testenv"
	"wpptrace/loader/image"
	"wpptrace/loader/target"
)

// TestNamesOfFilesThatAreNotTraced: of a file that is in no plan, routines have the names that it
// gives them, also when it could be opened early alone; without the file they have none.
func TestNamesOfFilesThatAreNotTraced(t *testing.T) {
	const path = "/bin/bash"
	if !testenv.Have(t, path) {
		t.Skip("there is no " + path)
	}
	im, err := image.OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	defer im.Close()
	offset := uint64(0)
	for _, s := range im.Symbols() {
		if s.Name == "xmalloc" {
			offset, _ = im.FileOffset(s.Addr)
		}
	}
	for _, open := range []bool{true, false} {
		var f *os.File
		if open {
			if f, err = os.Open(path); err != nil {
				t.Fatal(err)
			}
		}
		id := target.FileID{}
		s := &sampling{files: map[target.FileID]*sampledFile{id: newSampledFile(f, path)}}
		s.counts.Images = map[target.FileID]*sample.Image{
			id: {Name: path, Offsets: map[uint64]uint64{offset: 3, offset + 1: 4, 1 << 40: 5}}}
		s.counts.Kernel = 10
		p := s.profile(nil, nil)
		if len(p.Files) != 1 || p.Files[0].Samples != 12 || p.Kernel != 10 ||
			(p.Files[0].Names["xmalloc"] == 7) != open || len(p.Files[0].Names) > 1 {
			t.Errorf("open %v: %+v", open, p)
		}
		f.Close()
	}
}

// TestNotSampled: what is not sampled has no profile, and can be asked for all the same.
func TestNotSampled(t *testing.T) {
	var s *sampling
	s.pause()
	s.keep()
	s.take()
	s.resume()
	s.stop()
	s.close()
	if p := s.profile(nil, nil); p != nil {
		t.Errorf("%+v", p)
	}
}

// TestProfileIsACopy: a profile that was made stays what it is while more is counted.
func TestProfileIsACopy(t *testing.T) {
	one := sample.Counts{Kernel: 1, JIT: map[string]*sample.Unplaced{
		"[anon:v8]": {Samples: 1, Names: map[string]uint64{"f": 1}}}}
	s := &sampling{}
	s.counts.Add(one)
	p := s.profile(nil, nil)
	s.counts.Add(one)
	if p.Total() != 2 || p.JIT[0].Names["f"] != 1 {
		t.Errorf("%+v", p)
	}
}

// TestNoSamplesAreTakenDuringAPause: a window may be open then.
func TestNoSamplesAreTakenDuringAPause(t *testing.T) {
	s := &sampling{paused: true} // without a sampler: to take samples would panic
	s.keep()
}

// TestFailedTake: what was counted before samples could not be taken stays, and sampling ends:
// nothing interrupts the process any more.
func TestFailedTake(t *testing.T) {
	if testing.Short() {
		t.Skip("it samples a process")
	}
	before := events(t)
	p, err := target.Open(os.Getpid())
	must(t, err)
	defer p.Close()
	sampler, err := sample.Start(p, sample.Options{})
	if errors.Is(err, sample.ErrNotAllowed) {
		t.Skip(err)
	}
	must(t, err)
	s := newSampling(sampler, slog.New(slog.DiscardHandler))
	defer s.close()
	s.take()
	period := s.counts.Period
	if s.err != nil || period == 0 {
		t.Fatalf("period %v, error %v", period, s.err)
	}
	clocks := events(t)
	if len(clocks) == len(before) {
		t.Fatal("there is no clock")
	}
	null, err := os.Open(os.DevNull)
	must(t, err)
	defer null.Close()
	// the period of one cannot be changed any more
	i := slices.IndexFunc(clocks, func(fd int) bool { return !slices.Contains(before, fd) })
	must(t, unix.Dup3(int(null.Fd()), clocks[i], unix.O_CLOEXEC))
	const renewed = 600 * time.Millisecond // the periods change after half a second
	time.Sleep(renewed)
	s.take()
	if s.err == nil || s.counts.Period != period {
		t.Errorf("period %v, want %v, error %v", s.counts.Period, period, s.err)
	}
	if left := events(t); len(left) != len(before) {
		t.Errorf("%d clocks are left", len(left)-len(before))
	}
}

// events are the perf events that this process has open.
func events(t *testing.T) (list []int) {
	t.Helper()
	const dir = "/proc/self/fd/"
	entries, err := os.ReadDir(dir)
	must(t, err)
	for _, e := range entries {
		to, _ := os.Readlink(dir + e.Name()) // that of the directory itself is closed
		if fd, err := strconv.Atoi(e.Name()); err == nil && to == "anon_inode:[perf_event]" {
			list = append(list, fd)
		}
	}
	return list
}
