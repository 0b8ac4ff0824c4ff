package report

import (
	"bufio"
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"wpptrace/query"
	"wpptrace/query/names"
	"wpptrace/query/querytest"
	"wpptrace/query/rules"
)

// All that is printed of long names has room in a line; JSON has them in full.
func TestLongNamesHaveRoom(t *testing.T) {
	s := querytest.Compressor()
	long := s.Routines[1].Name
	quoted := "'" + long + "'"
	if len(long) <= TableColumns {
		t.Fatalf("%d columns are not long", len(long))
	}
	s.Threads[0].TID, s.Threads[1].TID = 4194303, 4194304
	found, err := rules.Find(s,
		rules.FindQuery{Pattern: strings.Repeat(quoted+" ", 3) + "** main", Gap: 20, First: 1,
			Top: 5})
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(err)
	around, err := query.ContextOf(s, quoted, 20)
	check(err)
	order, err := rules.PathOrder(s, quoted+"#2", quoted+"#1")
	check(err)
	checked, err := rules.Check(s,
		[]string{"never " + quoted + " " + quoted, quoted + "#0 and main balanced",
			quoted + " before sub_3000", "main before " + quoted + "#0"})
	check(err)
	kept := slices.IndexFunc(checked.Rules, func(r rules.RuleReport) bool { return r.Kept })
	if len(found.Occurrences) == 0 || !order.EverP || kept < 0 || checked.Rules[0].Kept {
		t.Fatal("too little to print")
	}
	writers := map[string][2]func(io.Writer) error{
		"find": {func(w io.Writer) error { return WriteFind(w, s, found) },
			func(w io.Writer) error { return WriteFindJSON(w, s, found) }},
		"context": {func(w io.Writer) error { return WriteContext(w, s, around, 0) },
			func(w io.Writer) error { return WriteContextJSON(w, s, around, 0) }},
		"order": {func(w io.Writer) error { return WriteOrder(w, s, order) },
			func(w io.Writer) error { return WriteOrderJSON(w, s, order) }},
		"rules": {func(w io.Writer) error { return WriteRules(w, s, checked) },
			func(w io.Writer) error { return WriteRulesJSON(w, s, checked) }},
	}
	for name, write := range writers {
		var text, full bytes.Buffer
		check(write[0](&text))
		check(write[1](&full))
		for line := range strings.Lines(text.String()) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > TableColumns ||
				strings.HasSuffix(line, " \n") {
				t.Errorf("%s: a line of %d columns: %q", name, n, line)
			}
		}
		if !strings.Contains(text.String(), names.Ellipsis) || !strings.Contains(full.String(),
			long) {
			t.Errorf("%s: nothing shortened in\n%s, or in JSON %s", name, &text, &full)
		}
	}
}

// What was shortened still names the path.
func TestParagraph(t *testing.T) {
	s := querytest.Compressor()
	s.Symbols[2].Path = 1<<64 - 1
	l := NewLabels(s)
	words := l.words([]uint32{1, 2, 6})
	if want := []string{"main#1", words[1], "#gap 7"}; !slices.Equal(words, want) {
		t.Errorf("%q, want %q", words, want)
	}
	if len(words[1]) > widestName || !l.names.IsPath(2, words[1]) {
		t.Errorf("%s is %d columns wide, or does not name the path", words[1], len(words[1]))
	}
	for _, tt := range []struct {
		front string
		words []string
		want  string
	}{
		{"one  ", nil, "one\n"},
		{"one ", []string{"two"}, "one two\n"},
		{"é: ", slices.Repeat([]string{strings.Repeat("é", 32)}, 3),
			"é: " + strings.Repeat("é", 32) + " " + strings.Repeat("é",
				32) + "\n   " + strings.Repeat("é", 32) + "\n"},
		{"", slices.Repeat([]string{strings.Repeat("x", 49)}, 2),
			strings.Repeat("x", 49) + " " + strings.Repeat("x", 49) + "\n"},
	} {
		var b bytes.Buffer
		out := bufio.NewWriter(&b)
		writeParagraph(out, tt.front, tt.words)
		out.Flush()
		if b.String() != tt.want {
			t.Errorf("%q, want %q", b.String(), tt.want)
		}
	}
}

// TestMarksAreDescribed: JSON says what a mark is that stands beside paths, as text does.
func TestMarksAreDescribed(t *testing.T) {
	s := querytest.Letters("ab#ab")
	around, err := query.ContextOf(s, "b", 1)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := WriteContextJSON(&out, s, around, 0); err != nil {
		t.Fatal(err)
	}
	if want := `{"symbol":2,"mark":"gap","n":35}`; !strings.Contains(out.String(), want) {
		t.Errorf("no %s in %s", want, out.String())
	}
}
