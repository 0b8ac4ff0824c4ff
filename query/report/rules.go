package report

import (
	"bufio"
	"fmt"
	"io"
	"slices"

	"wpptrace/compress/wpp"
	"wpptrace/internal/text"
	"wpptrace/query/rules"
)

// WriteRules writes a report: a line for each rule, and for each thread that breaks it, or leaves
// it open, where it does so first.
func WriteRules(w io.Writer, s *wpp.Snapshot, r *rules.Report) error {
	out := bufio.NewWriter(w)
	labels := NewLabels(s)
	for _, rule := range r.Rules {
		switch {
		case rule.Kept:
			writeFitted(out, "kept    ", rule.Rule, "")
		case len(rule.Unknown) > 0:
			writeFitted(out, "unknown ", rule.Rule, ": not all of it was observed")
		case rule.Violations == 0:
			writeFitted(out, "open    ", rule.Rule, ": "+text.Count(rule.Open, "time"))
		case rule.Open == 0:
			writeFitted(out, "broken  ", rule.Rule, ": "+text.Count(rule.Violations, "time"))
		default:
			writeFitted(out, "broken  ", rule.Rule, ": "+text.Count(rule.Violations, "time")+", and open "+text.Count(rule.Open, "time"))
		}
		for _, v := range rule.Witnesses {
			fmt.Fprintf(out, "        thread %d, position %d, %s: %s\n", v.TID, v.Position, text.Count(v.Length, "path"), v.Why)
			writeParagraph(out, "        ", slices.Concat(labels.words(v.Before), bracketed(labels.stretch(v.Occurrence)), labels.words(v.After)))
		}
	}
	if r.Gaps > 0 {
		fmt.Fprintf(out, "%s where events were lost: what is lost may keep a rule or break it\n", text.Count(r.Gaps, "place"))
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write rules: %w", err)
	}
	return nil
}

// bracketed puts words in brackets.
func bracketed(words []string) []string {
	if len(words) == 0 {
		return []string{"[]"}
	}
	words[0] = "[" + words[0]
	words[len(words)-1] += "]"
	return words
}

// RulesJSON is what rules --json prints.
type RulesJSON struct {
	SchemaVersion int `json:"schema_version"`
	*rules.Report
	Legend
}

// WriteRulesJSON writes a report as one JSON object; paths says what the symbols of the witnesses
// are.
func WriteRulesJSON(w io.Writer, s *wpp.Snapshot, r *rules.Report) error {
	var all []rules.Occurrence
	for _, rule := range r.Rules {
		for _, v := range rule.Witnesses {
			around := rules.Occurrence{Symbols: slices.Concat(v.Before, v.After)}
			all = append(all, around)
			all = append(all, v.Occurrence)
		}
	}
	report := RulesJSON{SchemaVersion, r, legendOf(s, all)}
	return WriteJSON(w, report, "rules")
}
