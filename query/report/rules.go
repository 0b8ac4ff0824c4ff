package report

import (
	"bufio"
	"fmt"
	"io"
	"slices"

	"wpptrace/compress/wpp"
	"wpptrace/internal/text"
	"wpptrace/query/names"
	"wpptrace/query/rules"
)

// WriteRules writes a report: a line for each rule, and for each thread that breaks it, or leaves
// it open, where it does so first.
func WriteRules(w io.Writer, s *wpp.Snapshot, r *rules.Report) error {
	out := bufio.NewWriter(w)
	labels := NewLabels(s)
	for _, rule := range r.Rules {
		verdict, behind := verdictOf(&rule)
		if len(rule.NeverRan) > 0 && len(rule.Unknown) == 0 {
			behind += ": " + names.Fit(names.List(rule.NeverRan), TableColumns/3) + " never ran"
		}
		writeFitted(out, fmt.Sprintf("%-8s", verdict), rule.Rule, behind)
		for _, v := range rule.Witnesses {
			if v.Match != nil {
				fmt.Fprintf(out, "        thread %d: %s: %s\n", v.TID, v.Why, boundText(v.Match))
				writeMatch(out, s, labels.names, "        ", v.Match)
				continue
			}
			fmt.Fprintf(out, "        thread %d, position %d, %s: %s\n", v.TID, v.Position,
				text.Count(v.Length, "path"), v.Why)
			writeParagraph(out, "        ",
				slices.Concat(labels.words(v.Before), bracketed(labels.stretch(v.Occurrence)),
					labels.words(v.After)))
		}
		writeValued(out, "        ", rule.Valued)
	}
	if r.Gaps > 0 {
		fmt.Fprintf(out, "%s where events were lost: what is lost may keep a rule or break it\n",
			text.Count(r.Gaps, "place"))
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write rules: %w", err)
	}
	return nil
}

// verdictOf is a verdict in a word, and what is to be said of it behind the rule.
func verdictOf(r *rules.RuleReport) (verdict, behind string) {
	switch {
	case r.Kept:
		return "kept", ""
	case r.Inlined:
		return "unknown", ": inlined calls are not counted"
	case len(r.Unknown) > 0:
		return "unknown", ": not all of it was traced"
	case r.Violations+r.Unmet+r.Open == 0:
		return "open", ""
	case r.Violations+r.Unmet == 0:
		return "open", ": " + text.Count(r.Open, "time")
	case r.Unmet > 0:
		verdict = "unmet"
	default:
		verdict = "broken"
	}
	behind = ": " + text.Count(r.Violations+r.Unmet, "time") // one of them is 0
	if r.Open > 0 {
		behind += ", and open " + text.Count(r.Open, "time")
	}
	return verdict, behind
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
	SchemaVersion int        `json:"schema_version"`
	Rules         []RuleJSON `json:"rules"` // in the order in which they were given
	// places where events were lost: what is lost may keep a rule or break it
	Gaps uint64 `json:"gaps"`
	Inlined
	Legend
}

// RuleJSON says whether the threads keep a rule. It is broken if there are violations.
type RuleJSON struct {
	Rule string `json:"rule"` // as it was given
	Kept bool   `json:"kept"` // nothing breaks it, and nothing is open, or could not be decided
	// its names of routines of which no path ran
	NeverRan []string `json:"never_ran,omitempty"`
	// how often it is not kept for want of a routine that never ran: no violations
	Unmet uint64 `json:"unmet,omitempty"`
	// its names of routines that were not traced, or that are inlined as well where that may
	// change the verdict: nothing else is known of it
	Unknown    []string `json:"unknown,omitempty"`
	Violations uint64   `json:"violations"` // in all threads
	// what may have been kept before a record began, or in a gap, or may be yet where it ends of a
	// thread that ran on: no violations
	Open uint64 `json:"open"`
	// the first of each thread that breaks the rule or, if it does not, leaves it open
	Witnesses []WitnessJSON `json:"witnesses"`
	ValuedJSON
}

// WitnessJSON is where a thread breaks a rule first, or leaves it open: the shortest stretch.
type WitnessJSON struct {
	Why string `json:"why"` // in what way
	OccurrenceJSON
	Before []uint32 `json:"before"` // up to three symbols before it
	After  []uint32 `json:"after"`  // up to three symbols behind it
}

// WriteRulesJSON writes a report as one JSON object; paths says what the symbols of the witnesses
// are.
func WriteRulesJSON(w io.Writer, s *wpp.Snapshot, r *rules.Report) error {
	report := RulesJSON{SchemaVersion: SchemaVersion, Rules: []RuleJSON{}, Gaps: r.Gaps}
	known := names.Of(s)
	var all []uint32
	var texts []string
	for _, rule := range r.Rules {
		texts = append(texts, rule.Rule)
		x := RuleJSON{rule.Rule, rule.Kept, rule.NeverRan, rule.Unmet, rule.Unknown,
			rule.Violations, rule.Open, []WitnessJSON{}, valuedJSON(rule.Valued)}
		for _, v := range rule.Witnesses {
			at := occurrenceJSON(v.Occurrence)
			at.Match = matchJSON(s, known, v.Match)
			x.Witnesses = append(x.Witnesses, WitnessJSON{v.Why, at, v.Before, v.After})
			all = slices.Concat(all, v.Before, v.Symbols, v.After)
		}
		report.Rules = append(report.Rules, x)
	}
	report.Inlined, report.Legend = inlinedOf(s, texts...), legendOf(s, all)
	return WriteJSON(w, report, "rules")
}
