package tiers

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"time"

	"wpptrace/compress/wet"
	"wpptrace/compress/wet/streams"
	"wpptrace/compress/wpp"
	"wpptrace/query/slice"
)

// A Component is one of a trace: how many bytes it has in each tier.
type Component struct {
	Before, First, Second uint64
	Numbers               uint64        // of the streams of the second tier
	Forward, Backward     time.Duration // that it took to step through all of them
}

// second puts streams in the second tier, and steps through them there.
func (c *Component) second(all [][]uint64) error {
	coded := streams.Append(nil, all...)
	c.Second = uint64(len(coded))
	set, err := streams.Open(coded, math.MaxUint64)
	if err != nil {
		return fmt.Errorf("read the second tier: %w", err)
	}
	for _, s := range set {
		c.Numbers += s.Len()
		begin := time.Now()
		s.Seek(s.Len())
		c.Forward += time.Since(begin)
		begin = time.Now()
		s.Seek(0)
		c.Backward += time.Since(begin)
	}
	return nil
}

// Tiers are those of a thread's first instructions.
type Tiers struct {
	Instructions              uint64
	Timestamps, Values, Edges Component
	// Labels is how many dependences there are, Local how many of these are within an execution of
	// a path, and Shared how many have the labels of others.
	Labels, Local, Shared uint64
}

// Sizes that are the paper's, in bytes.
const (
	wordSize  = 4 // of a timestamp, a value, a number
	labelSize = 2 * wordSize
)

// Of makes the tiers of a thread, by its index in s.Threads, of its first instructions: at most so
// many, and the rest of the path that is the last. It takes some microseconds and 100 bytes an
// instruction. It fails where a section is damaged.
func Of(s *wpp.Snapshot, thread int, most uint64) (t *Tiers, err error) {
	defer wpp.Recover(&err)
	code, err := wet.CodeOf(s)
	if err != nil {
		return nil, err
	}
	segments, err := wet.Segments(s, thread)
	if err != nil {
		return nil, err
	}
	m := &maker{most: most, graph: slice.NewBuilder(slice.Flows(s, code))}
	m.values.nodes = map[uint32]*node{}
	stop := stream(s, thread, &m.symbols)
	for i := 0; i < len(segments) && err == nil; i++ {
		err = segments[i].Replay(0, math.MaxUint64, m)
	}
	stop()
	if err != nil && !errors.Is(err, errEnough) {
		return nil, fmt.Errorf("replay thread %d: %w", s.Threads[thread].TID, err)
	}
	m.values.flush()
	t = &Tiers{Instructions: uint64(len(m.at))}
	return t, cmp.Or(m.values.measure(t), m.measureEdges(t))
}

var errEnough = errors.New("enough")

// A maker collects what is executed.
type maker struct {
	most    uint64
	graph   *slice.Builder
	symbols symbols
	values  valuer
	at      []statement // by instance
}

// A statement is an executed one: its timestamp, and what it is.
type statement struct {
	stamp  uint32 // position of its path
	symbol uint32 // its path
	number uint32 // of it there
}

// Executed is for who replays: see wet.Observer.
func (m *maker) Executed(e *wet.Executed) error {
	x := statement{stamp: uint32(e.Symbol), symbol: m.symbols.at(e.Symbol)}
	if n := len(m.at); n > 0 && m.at[n-1].stamp == x.stamp {
		x.number = m.at[n-1].number + 1
	} else if uint64(n) >= m.most {
		return errEnough
	} else {
		m.values.begin(x.symbol, e.Symbol)
	}
	m.at = append(m.at, x)
	m.values.add(e)
	return m.graph.Executed(e)
}
