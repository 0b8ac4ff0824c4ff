package attach

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"wpptrace/bpf"
)

// Metrics are what the BPF program has counted, failures but for the last.
type Metrics struct {
	LostHits, LostBatches uint64 // the ring buffer was full
	LostByWhom            uint64 // times that it could not be noted which thread had lost some: Losses is not complete
	NoStorage             uint64 // hits that no memory was left for
	NoSite                uint64 // hits of a probe that is not in the plan
	Forgone               uint64 // of the lost hits, those of which something was to be read that lay in no page of the process
	Unreadable            uint64 // return addresses that could not be read
	LongChain             uint64 // chains of callers too long to follow
	HighAddress           uint64 // frames above 2^47
	Unreported            uint64 // hits while probes were put in and out, or counted alone
}

// LogValue lists the failures that there were.
func (m Metrics) LogValue() slog.Value {
	var list []slog.Attr
	for _, f := range []struct {
		what string
		n    uint64
	}{
		{"lost hits", m.LostHits}, {"lost batches", m.LostBatches}, {"of lost hits, not readable", m.Forgone},
		{"lost by nobody knows whom", m.LostByWhom}, {"hits without memory", m.NoStorage},
		{"hits of no known probe", m.NoSite}, {"unreadable", m.Unreadable}, {"long chains of callers", m.LongChain}, {"frames too high", m.HighAddress}, {"not reported", m.Unreported},
	} {
		if f.n > 0 {
			list = append(list, slog.Uint64(f.what, f.n))
		}
	}
	if len(list) == 0 {
		return slog.StringValue("none")
	}
	return slog.GroupValue(list...)
}

// Metrics reads the failures so far.
func (s *Session) Metrics() (Metrics, error) {
	var m [bpf.TracerMetricMETRICS]uint64
	if err := s.objects.Metrics.Get(&m); err != nil {
		return Metrics{}, fmt.Errorf("read the counters of the BPF program: %w", err)
	}
	return Metrics{
		LostHits:    m[bpf.TracerMetricMETRIC_LOST_HITS],
		LostBatches: m[bpf.TracerMetricMETRIC_LOST_BATCHES],
		LostByWhom:  m[bpf.TracerMetricMETRIC_LOST_BY_WHOM],
		NoStorage:   m[bpf.TracerMetricMETRIC_NO_STORAGE],
		NoSite:      m[bpf.TracerMetricMETRIC_NO_SITE],
		Forgone:     m[bpf.TracerMetricMETRIC_DROPPED_HITS],
		Unreadable:  m[bpf.TracerMetricMETRIC_UNREADABLE],
		LongChain:   m[bpf.TracerMetricMETRIC_LONG_CHAIN],
		HighAddress: m[bpf.TracerMetricMETRIC_HIGH_ADDRESS],
		Unreported:  m[bpf.TracerMetricMETRIC_UNREPORTED],
	}, nil
}

// ReportTime is what the report of a hit takes on average, most of what the BPF program does: that
// of every 61st of each thread is timed; false: too few were.
func (s *Session) ReportTime() (took time.Duration, known bool) {
	const enough = 32
	var m [bpf.TracerMetricMETRICS]uint64
	if err := s.objects.Metrics.Get(&m); err != nil || m[bpf.TracerMetricMETRIC_TIMED] < enough {
		return 0, false
	}
	return time.Duration(m[bpf.TracerMetricMETRIC_TIMED_NS] / m[bpf.TracerMetricMETRIC_TIMED]), true
}

// TypicalReport is what it takes where words say little: 10 to 55 ns were measured. Long chains of
// callers take half a microsecond.
const TypicalReport = 30 * time.Nanosecond

// A Loss is what a thread had made and lost when it lost some hits last.
type Loss struct {
	Thread  uint32
	Started uint64 // CLOCK_BOOTTIME when the thread began, ns
	Hits    uint64
	Lost    uint64 // of them
}

// Losses lists the threads that lost hits, those that have ended too.
func (s *Session) Losses() (list []Loss, err error) {
	var who bpf.TracerLife
	var l bpf.TracerLoss
	it := s.objects.Losses.Iterate()
	for it.Next(&who, &l) {
		list = append(list, Loss{uint32(who.Tid), who.Started, l.Hits, l.Lost})
	}
	if err := it.Err(); err != nil {
		return nil, fmt.Errorf("read what each thread has lost: %w", err)
	}
	return list, nil
}

// LossOf returns what a thread, which began at a time, had lost when it lost some hits last; none if it
// lost nothing.
func (s *Session) LossOf(thread uint32, started uint64) (Loss, error) {
	var l bpf.TracerLoss
	err := s.objects.Losses.Lookup(bpf.TracerLife{Started: started, Tid: uint64(thread)}, &l)
	if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return Loss{}, fmt.Errorf("read what thread %d has lost: %w", thread, err)
	}
	return Loss{thread, started, l.Hits, l.Lost}, nil
}

// Forked reports whether the process has started another one since Enable. That one runs untraced.
func (s *Session) Forked() bool {
	var v uint32
	return s.objects.Forked.Get(&v) == nil && v != 0
}

// Exit tells how the process has come to its end; false: it has not, or not since the session was
// loaded.
func (s *Session) Exit() (status unix.WaitStatus, ended bool) {
	var v uint32
	if s.objects.Ended.Get(&v) != nil || v == 0 {
		return 0, false
	}
	return unix.WaitStatus(v &^ uint32(bpf.TracerEndingFlagENDED)), true
}

// Replaced reports whether the process has called exec: its program is another one now, and nothing
// is reported any more.
func (s *Session) Replaced() bool {
	var v uint32
	return s.objects.Replaced.Get(&v) == nil && v != 0
}
