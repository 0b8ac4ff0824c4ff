package pathprofile

import (
	"fmt"
	"math"
	"slices"

	"google.golang.org/protobuf/proto"

	"wpptrace/compress/wpp"
)

// Kind is that of the section.
const Kind = (wpp.FirstSection + 3) | wpp.Critical

// Most is where counters stop: it stands for so many executions or more.
const Most = math.MaxUint64

// Counts are how often the symbols of a snapshot, paths and marks, came in all threads together.
// Where events were lost, it was so often at least: the figures of the snapshot say whether.
type Counts struct {
	Of      []uint64 // by symbol
	Threads uint64   // that were counted
	Runs    uint64   // processes that were counted
	// what windows have counted, some in a row together, of a process that was traced in windows;
	// none: that is not known
	Clusters []Cluster
}

// A Cluster is what some windows in a row have counted.
type Cluster struct {
	Windows uint64   // in which anything ran
	Of      []uint64 // by symbol; shorter: the rest are 0
}

// Section returns the section that Of reads. It takes time linear in the counts.
func (c *Counts) Section() *wpp.Section {
	m := &PathProfileSection{Count: c.Of, Threads: c.Threads, Runs: c.Runs}
	for _, x := range c.Clusters {
		m.Cluster = append(m.Cluster, &PathProfileSection_Cluster{Windows: x.Windows, Count: x.Of})
	}
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil { // of a message of numbers
		panic(err)
	}
	return wpp.NewSection(Kind, data)
}

// IsProfile reports whether a snapshot that was read with Kind as a known one is a path profile.
func IsProfile(s *wpp.Snapshot) bool {
	for range s.SectionsOf(Kind) {
		return true
	}
	return false
}

// Of returns the counts of a snapshot that was read with Kind as a known one; nil: it is no path
// profile. It fails where the section is damaged. It takes time linear in the symbols.
func Of(s *wpp.Snapshot) (*Counts, error) {
	for section := range s.SectionsOf(Kind) {
		c, err := decode(section, s)
		if err != nil {
			return nil, fmt.Errorf("read the section of path counts: %w", err)
		}
		return c, nil
	}
	return nil, nil
}

// Runs is how many processes a path profile has counted; 0: it is none, or is damaged.
func Runs(s *wpp.Snapshot) uint64 {
	if c, err := Of(s); err == nil && c != nil {
		return c.Runs
	}
	return 0
}

// mostCounted is how many threads, processes or windows anything has that was counted.
const mostCounted = 1 << 48

func decode(section *wpp.Section, s *wpp.Snapshot) (*Counts, error) {
	data, err := section.Data()
	if err != nil {
		return nil, err
	}
	m := &PathProfileSection{}
	if err := proto.Unmarshal(data, m); err != nil {
		return nil, err
	}
	switch {
	case len(m.Count) != len(s.Symbols):
		return nil, fmt.Errorf("it has %d counts of %d symbols", len(m.Count), len(s.Symbols))
	case len(s.Threads) > 0:
		return nil, fmt.Errorf("there are %d grammars besides", len(s.Threads))
	case m.Threads > mostCounted || m.Runs > mostCounted:
		return nil, fmt.Errorf("it is of %d threads in %d processes", m.Threads, m.Runs)
	case len(m.Cluster) > mostClusters:
		return nil, fmt.Errorf("it has %d clusters of windows", len(m.Cluster))
	}
	c := &Counts{Of: m.Count, Threads: m.Threads, Runs: m.Runs}
	rest := slices.Clone(m.Count)
	for _, x := range m.Cluster {
		if len(x.Count) > len(rest) || x.Windows > mostCounted {
			return nil, fmt.Errorf("%d windows have %d counts of %d symbols", x.Windows,
				len(x.Count), len(rest))
		}
		for sym, n := range x.Count {
			switch {
			case m.Count[sym] == Most: // the sum has stopped there
			case n > rest[sym]:
				return nil, fmt.Errorf("windows have counted symbol %d more often than %d times",
					sym, m.Count[sym])
			default:
				rest[sym] -= n
			}
		}
		c.Clusters = append(c.Clusters, Cluster{Windows: x.Windows, Of: x.Count})
	}
	return c, nil
}
