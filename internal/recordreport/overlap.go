package recordreport

import (
	"fmt"

	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/overlapped"
	"wpptrace/internal/saturating"
	"wpptrace/internal/text"
	"wpptrace/query/bounds"
)

// Overlaps says what a profile has counted of overlapping paths, and which degree would tell all
// apart that ran; nothing: it has counted none. It fails where a section is damaged.
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
	m, err := bounds.New(s, p)
	if err != nil {
		return nil, fmt.Errorf("find the greatest useful degree: %w", err)
	}
	lines = append(lines, fmt.Sprintf("%s; the greatest useful degree, of what ran, is %d", line,
		m.Degree()))
	if n := len(p.Uncounted); n > 0 {
		lines = append(lines, fmt.Sprintf("of %s not all overlapping paths are counted, for there "+
			"are too many", text.Count(n, "path")))
	}
	return lines, nil
}
