package attach

import (
	"fmt"

	"wpptrace/bpf"
)

// Metrics are the failures that the BPF program has counted.
type Metrics struct {
	LostHits, LostBatches uint64 // the ring buffer was full
	NoStorage             uint64 // hits that no memory was left for
	NoSite                uint64 // hits of a probe that is not in the plan
	Unreadable            uint64 // return addresses or switch values that could not be read
	LongChain             uint64 // chains of callers too long to follow
	HighAddress           uint64 // frames above 2^47
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
		NoStorage:   m[bpf.TracerMetricMETRIC_NO_STORAGE],
		NoSite:      m[bpf.TracerMetricMETRIC_NO_SITE],
		Unreadable:  m[bpf.TracerMetricMETRIC_UNREADABLE],
		LongChain:   m[bpf.TracerMetricMETRIC_LONG_CHAIN],
		HighAddress: m[bpf.TracerMetricMETRIC_HIGH_ADDRESS],
	}, nil
}

// Losses tells for each thread that lost hits how many it had made, and how many of them were lost, when it lost some last.
func (s *Session) Losses() map[uint32]bpf.TracerLoss {
	list := map[uint32]bpf.TracerLoss{}
	var tid uint32
	var l bpf.TracerLoss
	for it := s.objects.Losses.Iterate(); it.Next(&tid, &l); {
		list[tid] = l
	}
	return list
}

// Replaced reports whether the process has called exec: its program is another one now, and nothing is reported any more.
func (s *Session) Replaced() bool {
	var v uint32
	return s.objects.Replaced.Get(&v) == nil && v != 0
}
