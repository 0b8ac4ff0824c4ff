package report

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"wpptrace/compress/ops"
	"wpptrace/compress/wpp"
	"wpptrace/query"
	"wpptrace/query/querytest"
	"wpptrace/query/rules"
)

// What is not known is null in JSON, never 0: here, of a trace that says nothing of what its paths
// are, nor of how it was made.
func TestUnknownIsNull(t *testing.T) {
	s := querytest.BareSymbols(t, strings.Repeat("\x01\x00\x00\x00", 3))
	x, err := query.NewStat(s, 0)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := WriteStatJSON(&out, x); err != nil {
		t.Fatal(err)
	}
	var figures map[string]any
	if err := json.Unmarshal(out.Bytes(), &figures); err != nil {
		t.Fatal(err)
	}
	known := map[string]any{
		"schema_version": 2.0, "paths": 3.0, "distinct_paths": 1.0, "threads": 1.0, "rules": 1.0,
		"rules_per_path": 1.0, "sampled": 1.0,
		"lost": 0.0, "gaps": 0.0, "windows": 0.0, "routines_total": 1.0, "routines_observed": 1.0,
		"routines_met": 1.0,
		"rhs_symbols":  3.0, "trace_bytes": figures["trace_bytes"],
		"grammar_ascii_bytes": figures["grammar_ascii_bytes"],
		"ratio_ascii":         figures["ratio_ascii"],
	}
	for name, value := range figures {
		if value != known[name] {
			t.Errorf("%s is %v, want %v", name, value, known[name])
		}
	}
	if known["trace_bytes"] == nil || known["ratio_ascii"] == nil {
		t.Errorf("%s", &out)
	}
	if l := NewLabels(s).Of(0); l.Instructions != nil {
		t.Errorf("%d instructions of a path of no blocks", *l.Instructions)
	}
}

func TestUnknownPlacesAreNull(t *testing.T) {
	text, err := json.Marshal([]OccurrenceJSON{
		occurrenceJSON(rules.Occurrence{TID: 1, Position: math.MaxUint64, Symbols: []uint32{2}}),
		occurrenceJSON(rules.Occurrence{TID: 1, Length: 1, Symbols: []uint32{2}}),
	})
	want :=
		`[{"tid":1,"position":null,"length":null,"symbols":[2]},{"tid":1,"position":0,"length":1,"symbols":[2]}]`
	if err != nil || string(text) != want {
		t.Errorf("%s, want %s", text, want)
	}
	s := &wpp.Snapshot{Symbols: []wpp.Symbol{{IsMark: true, Mark: ops.Gap},
		{IsMark: true, Mark: ops.Gap, N: 7}}}
	if l := legendOf(s, []uint32{0, 1}); l.Marks["0"].N != nil || *l.Marks["1"].N != 7 {
		t.Errorf("%+v", l.Marks)
	}
}
