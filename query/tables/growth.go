package tables

import (
	"fmt"

	"wpptrace/compress/sequitur"
	"wpptrace/compress/wet"
	"wpptrace/compress/wpp"
	"wpptrace/query/internal/stream"
)

// mostPoints bounds how many points figure 9 has.
const mostPoints = 10

// A point is where a beginning of a thread's trace ends: where a segment does.
type point struct {
	symbols                           uint64 // of its stream
	bytes                             uint64 // of its segments in the file
	instructions, valued, dependences uint64
}

// pointsOf returns the ends of some segments of a thread, the last among them: figures are missing.
func pointsOf(s *wpp.Snapshot, thread int) (list []point, err error) {
	segments, err := wet.Segments(s, thread)
	if err != nil {
		return nil, err
	}
	bytes := uint64(0)
	for i := range segments {
		size, err := segments[i].Size()
		if err != nil {
			return nil, err
		}
		bytes += uint64(size)
		if i+1 < len(segments) {
			list = append(list, point{symbols: segments[i+1].First(), bytes: bytes})
		} else {
			list = append(list, point{symbols: s.Threads[thread].Grammar.Length(0), bytes: bytes})
		}
	}
	few := list[:0]
	for i, x := range list {
		if (i+1)*mostPoints/len(list) > i*mostPoints/len(list) {
			few = append(few, x)
		}
	}
	return few, nil
}

// growth makes figure 9, of the thread that executed most: the ratio of its beginnings. Its paths
// are compressed again; code and tables are whole from the beginning.
func growth(s *wpp.Snapshot, n *counted) (rows []Row, err error) {
	if len(s.Threads) == 0 {
		return nil, nil
	}
	part := *s
	part.Sections = nil
	for section := range s.SectionsOf(wet.CodeKind) {
		part.Sections = append(part.Sections, section)
	}
	t := s.Threads[n.largest]
	c := stream.New(t.Grammar)
	g := sequitur.NewFolding()
	for _, x := range n.points {
		for c.Position() < x.symbols {
			sym, ok := c.Next()
			if !ok {
				break
			}
			g.Append(sym)
		}
		t.Grammar = wpp.FromSequitur(g)
		part.Threads = []wpp.Thread{t}
		paths, err := written(&part)
		if err != nil {
			return nil, err
		}
		rows = append(rows, Row{"figure 9",
			fmt.Sprintf("ratio after %d instructions", x.instructions),
			ratio(timestamp*x.instructions+value*x.valued+dependence*x.dependences, paths+x.bytes),
			"", 0})
	}
	return rows, nil
}
