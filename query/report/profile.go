package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/pathprofile"
	"wpptrace/internal/saturating"
	"wpptrace/query"
)

// ProfileJSON is what profile --json prints. Where windows were traced, counts are those of these.
type ProfileJSON struct {
	SchemaVersion int    `json:"schema_version"`
	Threads       int    `json:"threads"`      // that were counted, all together
	Executions    uint64 `json:"executions"`   // of all paths
	Instructions  uint64 `json:"instructions"` // that ran in them
	// the share of the program's own CPU time that was traced; null: not known, but at most
	// sampled_most
	Sampled *float64 `json:"sampled"`
	// what sampled is at least, 95 times of 100; null where sampled is, or is 1
	SampledLeast *float64 `json:"sampled_least"`
	SampledMost  *float64 `json:"sampled_most"` // what it is at most; null where it is 1
	// each path that ran: those first in which most instructions ran
	Paths []PathCountJSON `json:"paths"`
}

// PathCountJSON is how often a path ran.
type PathCountJSON struct {
	*Label
	Count uint64  `json:"count"` // executions
	Share float64 `json:"share"` // of its instructions in those of all paths
	// it ran just so often; else so often at least, because events were lost or it ran more often
	// than can be counted, or some events did not fit the program
	Exact bool `json:"exact"`
}

// NewProfileJSON is the object of a path profile, or of a recording. It takes time linear in the
// grammars, and in the instructions of all paths of the alphabet.
func NewProfileJSON(s *wpp.Snapshot) (*ProfileJSON, error) {
	counts, err := query.NewFrequencies(s)
	if err != nil {
		return nil, err
	}
	report := &ProfileJSON{SchemaVersion: SchemaVersion, Threads: counts.Threads,
		Sampled:      known(query.Sampled(&s.Figures), 0),
		SampledLeast: known(s.Figures.SampledLeast, 0),
		SampledMost:  known(s.Figures.SampledMost, 0), Paths: []PathCountJSON{}}
	whole := s.Figures.Lost == 0 && s.Figures.Gaps == 0 && s.Figures.Anomalies == 0
	labels := NewLabels(s)
	for i := range s.Symbols {
		sym := uint32(i)
		n := counts.Symbol(sym)
		if n == 0 || s.Symbols[i].IsMark {
			continue
		}
		report.Executions = saturating.Add(report.Executions, n)
		report.Instructions = saturating.Add(report.Instructions,
			saturating.Mul(n, s.SymbolCost(sym)))
		report.Paths = append(report.Paths, PathCountJSON{Label: labels.Of(sym), Count: n,
			Exact: whole && n < pathprofile.Most})
	}
	for i := range report.Paths {
		p := &report.Paths[i]
		p.Share = query.Share(saturating.Mul(p.Count, s.SymbolCost(p.Symbol)), report.Instructions)
	}
	slices.SortStableFunc(report.Paths, func(a, b PathCountJSON) int {
		return cmp.Or(cmp.Compare(b.Share, a.Share), cmp.Compare(b.Count, a.Count))
	})
	return report, nil
}

// WriteProfileJSON writes NewProfileJSON as one JSON object.
func WriteProfileJSON(w io.Writer, s *wpp.Snapshot) error {
	object, err := NewProfileJSON(s)
	if err != nil {
		return fmt.Errorf("write path counts: %w", err)
	}
	return WriteJSON(w, object, "path counts")
}
