package recordreport

import (
	"fmt"

	"wpptrace/compress/ops"
	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/overlapped"
	"wpptrace/internal/saturating"
	"wpptrace/internal/text"
	"wpptrace/query/names"
)

// Overlaps says what a profile has counted of overlapping paths, and which degree would tell all
// apart that ran; nothing: it has counted none. Its error is of a section that is damaged.
func Overlaps(s *wpp.Snapshot) (lines []string, err error) {
	p, err := overlapped.Of(s)
	if p == nil {
		return nil, err
	}
	all := uint64(0)
	for _, c := range p.Counts {
		all = saturating.Add(all, c.N)
	}
	line := fmt.Sprintf("overlapping paths of degree %d: %d different ones ran %d times", p.Degree,
		len(p.Counts), all)
	if k, at := mostUseful(s, p); at != nil {
		line += fmt.Sprintf("; the greatest useful degree, of what ran, is %d, in %s", k,
			names.Fit(at.Name, 60))
	}
	lines = append(lines, line)
	if n := len(p.Uncounted); n > 0 {
		lines = append(lines, fmt.Sprintf("of %s not all overlapping paths are counted, for there "+
			"are too many", text.Count(n, "path")))
	}
	return lines, nil
}

// mostUseful returns the least degree that tells apart all that ran, and a routine that takes it.
func mostUseful(s *wpp.Snapshot, p *overlapped.Profile) (k int, at *wpp.Routine) {
	for i := range s.Symbols {
		q := &s.Symbols[i]
		if q.IsMark || q.Start == ops.StartResume || q.End == ops.EndCut || len(q.Blocks) == 0 {
			continue
		}
		shape, part := p.ShapeOf(q.Routine), q.Blocks
		if shape == nil {
			continue
		}
		if q.Start == ops.StartLoop {
			loop := shape.LoopAt(part[0])
			if loop < 0 || shape.Loops[loop].LeftOut != "" {
				continue
			}
			part = shape.Loops[loop].After(part)
		}
		if degree := shape.Degree(part); at == nil || degree > k {
			k, at = degree, &s.Routines[q.Routine]
		}
	}
	return k, at
}
