package attach

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"wpptrace/bpf"
	"wpptrace/bpf/wire"
)

// Counters are what the BPF program of a session has counted so far, of all threads and of each.
// They may be read while it reports, and until the session is closed, by several goroutines.
type Counters struct {
	objects *bpf.TracerObjects
	pid     int
}

// Counters returns what the session's BPF program counts.
func (s *Session) Counters() *Counters { return &Counters{&s.objects, s.process.PID} }

// Metrics are what the BPF program has counted: failures, and hits that are not reported.
type Metrics struct {
	LostHits, LostBatches uint64 // the ring buffer was full
	// times that it could not be noted which thread had lost some: Losses is not complete
	LostByWhom uint64
	NoStorage  uint64 // hits that no memory was left for
	NoSite     uint64 // hits of a probe that is not in the plan
	// of the lost hits, those of which something was to be read that lay in no page of the process
	Dropped     uint64
	Unreadable  uint64 // return addresses that could not be read
	LongChain   uint64 // chains of callers too long to follow
	HighAddress uint64 // frames above 2^47
	Unreported  uint64 // hits while probes were put in and out, or counted alone
	// hits of which no state is kept: of threads whose memory another has, of 1,024
	NoStates   uint64
	LostStates uint64 // the ring buffer was full: of hits that may be reported all the same
	ValueHits  uint64 // of probes for values alone, which no event reports
}

// LogValue lists the failures that there were.
func (m Metrics) LogValue() slog.Value {
	var list []slog.Attr
	for _, f := range []struct {
		what string
		n    uint64
	}{
		{"lost hits", m.LostHits}, {"lost batches", m.LostBatches},
		{"of lost hits, dropped as unreadable",
			m.Dropped},
		{"lost by nobody knows whom", m.LostByWhom}, {"hits without memory", m.NoStorage},
		{"hits of no known probe", m.NoSite}, {"unreadable", m.Unreadable},
		{"long chains of callers", m.LongChain}, {"frames too high", m.HighAddress},
		{"not reported", m.Unreported}, {"hits without a state", m.NoStates},
		{"lost states", m.LostStates},
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
func (c *Counters) Metrics() (Metrics, error) {
	var m [bpf.TracerMetricMETRICS]uint64
	if err := c.objects.Metrics.Get(&m); err != nil {
		return Metrics{}, fmt.Errorf("read the counters of the BPF program: %w", err)
	}
	return Metrics{
		LostHits:    m[bpf.TracerMetricMETRIC_LOST_HITS],
		LostBatches: m[bpf.TracerMetricMETRIC_LOST_BATCHES],
		LostByWhom:  m[bpf.TracerMetricMETRIC_LOST_BY_WHOM],
		NoStorage:   m[bpf.TracerMetricMETRIC_NO_STORAGE],
		NoSite:      m[bpf.TracerMetricMETRIC_NO_SITE],
		Dropped:     m[bpf.TracerMetricMETRIC_DROPPED_HITS],
		Unreadable:  m[bpf.TracerMetricMETRIC_UNREADABLE],
		LongChain:   m[bpf.TracerMetricMETRIC_LONG_CHAIN],
		HighAddress: m[bpf.TracerMetricMETRIC_HIGH_ADDRESS],
		Unreported:  m[bpf.TracerMetricMETRIC_UNREPORTED],
		NoStates:    m[bpf.TracerMetricMETRIC_NO_STATES],
		LostStates:  m[bpf.TracerMetricMETRIC_LOST_STATES],
		ValueHits:   m[bpf.TracerMetricMETRIC_VALUE_HITS],
	}, nil
}

// SiteHits counts the hits so far, by site of the plan, that were not reported: while probes went
// in or out, and those of cold probes between windows. Cost: a copy of 8 bytes a site.
func (c *Counters) SiteHits(sites int) ([]uint64, error) {
	m, err := c.objects.SiteHits.Memory()
	if err != nil {
		return nil, fmt.Errorf("read the hits of sites: %w", err)
	}
	raw := make([]byte, 8*sites)
	if _, err := m.ReadAt(raw, 0); err != nil {
		return nil, fmt.Errorf("read the hits of sites: %w", err)
	}
	list := make([]uint64, sites)
	for i := range list {
		list[i] = binary.LittleEndian.Uint64(raw[8*i:])
	}
	return list, nil
}

// ReportTime is what the report of a hit takes on average, most of what the BPF program does: that
// of every 61st of each thread is timed; false: too few were.
func (c *Counters) ReportTime() (took time.Duration, known bool) {
	const enough = 32
	var m [bpf.TracerMetricMETRICS]uint64
	if err := c.objects.Metrics.Get(&m); err != nil || m[bpf.TracerMetricMETRIC_TIMED] < enough {
		return 0, false
	}
	return time.Duration(m[bpf.TracerMetricMETRIC_TIMED_NS] / m[bpf.TracerMetricMETRIC_TIMED]), true
}

// TypicalReport is what it takes for most hits: 10 to 55 ns were measured. Long chains of
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
func (c *Counters) Losses() (list []Loss, err error) {
	var who bpf.TracerLife
	var l bpf.TracerLoss
	it := c.objects.Losses.Iterate()
	for it.Next(&who, &l) {
		list = append(list, Loss{uint32(who.Tid), who.Started, l.Hits, l.Lost})
	}
	if err := it.Err(); err != nil {
		return nil, fmt.Errorf("read what each thread has lost: %w", err)
	}
	return list, nil
}

// LossOf returns what a thread, which began at a time, had lost when it lost some hits last; none
// if it lost nothing.
func (c *Counters) LossOf(thread uint32, started uint64) (Loss, error) {
	var l bpf.TracerLoss
	err := c.objects.Losses.Lookup(bpf.TracerLife{Started: started, Tid: uint64(thread)}, &l)
	if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return Loss{}, fmt.Errorf("read what thread %d has lost: %w", thread, err)
	}
	return Loss{thread, started, l.Hits, l.Lost}, nil
}

// Hits are those that a thread has made.
type Hits struct {
	Made      uint64 // since Enable
	Repeating uint64 // of them, those of the site that was hit last, in a row and not reported yet
	Site      int    // the index in the plan of that site; means nothing if Repeating is 0
}

// Hits asks the kernel for the hits of a thread, those not reported yet included. It fails for a
// thread that has made none, for some that are gone, and before Linux 6.9 for some where threads
// are many. Cost: a system call, or four for a thread that has no slot.
func (c *Counters) Hits(tid int) (Hits, error) {
	t, err := c.thread(tid)
	if err != nil {
		return Hits{}, err
	}
	return Hits{Made: t.Batch.Hits, Repeating: t.Repeats, Site: wire.Event(t.Last).Site()}, nil
}

// thread reads what the BPF program remembers of a thread: in its slot or, if another has that, in
// its task storage.
func (c *Counters) thread(tid int) (t bpf.TracerThread, err error) {
	if err := c.objects.Slots.Lookup(uint32(tid)%c.objects.Slots.MaxEntries(), &t); err == nil &&
		t.Batch.Tid == uint32(tid) {
		return t, nil
	}
	flags := 0
	if tid != c.pid {
		flags = unix.PIDFD_THREAD
	}
	fd, err := unix.PidfdOpen(tid, flags)
	if err != nil {
		return t, fmt.Errorf("open thread %d: %w", tid, err)
	}
	defer unix.Close(fd)
	if err := c.objects.Threads.Lookup(int32(fd), &t); err != nil {
		return t, fmt.Errorf("look up thread %d: %w", tid, err)
	}
	return t, nil
}
