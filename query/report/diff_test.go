package report

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"wpptrace/compress/ops"
	"wpptrace/compress/wpp"
	"wpptrace/query"
	"wpptrace/query/querytest"
)

// cutAtBars is a snapshot of a text in which windows end at each bar.
func cutAtBars(text string) *wpp.Snapshot {
	s := querytest.BuildOf(querytest.Letters(text), "1")
	s.Figures.Windows, s.Figures.Sampled = uint64(strings.Count(text, "|")), 0.1
	s.Symbols[querytest.Letter(s, '|')] = wpp.Symbol{IsMark: true, Mark: ops.Gap}
	return s
}

// TestDiffOfWindows: what differs by chance is not listed, and the rest has its range.
func TestDiffOfWindows(t *testing.T) {
	a := cutAtBars(strings.Repeat("abab|aabbab|ab|abaab|", 5))
	b := cutAtBars(strings.Repeat("abxx|aabbxx|axxb|abxxa|", 5))
	q := query.DiffQuery{Hot: query.DefaultHotQuery(), Share: true}
	r, err := query.Diff(a, b, q)
	if err != nil {
		t.Fatal(err)
	}
	checkGolden(t, "diff-windows.txt", func(w io.Writer) error { return WriteDiff(w, a, b, r) })
	if list := DiffCaveats(r); len(list) != 0 {
		t.Errorf("caveats %q", list)
	}
	q.All = true
	short := cutAtBars("abab|abab|abx|")
	if r, err = query.Diff(a, short, q); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := WriteDiffJSON(&out, a, short, r); err != nil {
		t.Fatal(err)
	}
	var got DiffJSON
	if err := json.Unmarshal(out.Bytes(), &got); err != nil || got.WindowsB != 3 ||
		got.Unsure != nil || got.HiddenPaths != 0 {
		t.Errorf("%v: %s", err, out.String())
	}
	for _, p := range got.Paths {
		if p.Low == nil || p.High == nil || p.P == nil || *p.Low > *p.High || *p.P > 1 {
			t.Errorf("%+v", p)
		}
	}
	const few = "the second snapshot has few windows, 3: intervals are wide, and much that differs " +
		"may not be listed"
	if list := DiffCaveats(r); len(list) != 1 || list[0] != few {
		t.Errorf("caveats %q", list)
	}
	if r, err = query.Diff(a, cutAtBars("ab|"), q); err != nil {
		t.Fatal(err)
	}
	const unsure = "it is not known which differences are by chance: of the second snapshot: it has " +
		"1 window"
	if list := DiffCaveats(r); len(list) != 1 || list[0] != unsure {
		t.Errorf("caveats %q", list)
	}
}
