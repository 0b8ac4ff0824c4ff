package querytest

import (
	"wpptrace/compress/ops"
	"wpptrace/compress/sequitur"
	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/overlapped"
)

// Table4 is the loop of tables 2 to 5 of Tallam, Zhang and Gupta 2004, which was entered times 2
// times: one half for paths 1, 1, 3 and one half for 2, 2, 3. Blocks are En, P1, B1, P2, B2, B3, P3
// and Ex. It returns the snapshot, and the shape of its routine.
func Table4(times int) (*wpp.Snapshot, []overlapped.Shape) {
	const en, p1, b1, p2, b2, b3, p3, ex = 0, 1, 2, 3, 4, 5, 6, 7
	s := &wpp.Snapshot{
		Images: []wpp.Image{{Name: "/usr/bin/tallam"}},
		Files:  []string{"/src/tallam.c"},
		Routines: []wpp.Routine{{Name: "loop", Entry: 0x1000, Paths: 12,
			Ranges: []wpp.Range{{Lo: 0x1000, Hi: 0x1008}}}},
	}
	for b := range ex + 1 {
		s.Routines[0].Blocks = append(s.Routines[0].Blocks, wpp.Block{Addr: 0x1000 + uint64(b),
			Lengths: []byte{1}, Line: 10 + b, Last: 10 + b})
	}
	bodies := [][]int{{p1, b1, p3}, {p1, p2, b2, p3}, {p1, p2, b3, p3}}
	for i, body := range bodies {
		s.Symbols = append(s.Symbols,
			wpp.Symbol{Path: uint64(3 + i), Start: ops.StartEntry, End: ops.EndLoop,
				Blocks: append([]int{en}, body...)},
			wpp.Symbol{Path: uint64(6 + i), Start: ops.StartLoop, End: ops.EndLoop, Blocks: body},
			wpp.Symbol{Path: uint64(9 + i), Start: ops.StartLoop, End: ops.EndReturn,
				Blocks: append(append([]int{}, body...), ex)})
	}
	g := sequitur.New()
	for _, body := range []uint32{0, 1} {
		for range times {
			for kind, of := range []uint32{body, body, 2} {
				g.Append(3*of + uint32(kind))
			}
		}
	}
	s.Threads = []wpp.Thread{{TID: 1, Name: "tallam", Grammar: wpp.FromSequitur(g), Ended: true}}
	return s, []overlapped.Shape{{Predicates: []int{p1, p2, p3},
		Loops: []overlapped.Loop{{Head: p1, Blocks: []int{p1, b1, p2, b2, b3, p3}}}}}
}
