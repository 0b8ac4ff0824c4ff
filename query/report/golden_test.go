package report

import (
	"bytes"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	gocmp "github.com/google/go-cmp/cmp"

	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/wpptest"
	"wpptrace/query"
	"wpptrace/query/querytest"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func checkGolden(t *testing.T, name string, write func(w io.Writer) error) {
	t.Helper()
	var got bytes.Buffer
	if err := write(&got); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("%s: want -, got +:\n%s", file, diff)
	}
}

func TestGolden(t *testing.T) {
	s := querytest.Compressor()
	hot := func(s *wpp.Snapshot, minLength, maxLength int, minCost uint64) *query.HotReport {
		r, err := query.Hot(s,
			query.HotQuery{MinLength: minLength, MaxLength: maxLength, MinCost: minCost,
				Metric: query.Instructions})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	tests := []struct {
		name  string
		write func(w io.Writer) error
	}{
		{"hot.txt", func(w io.Writer) error { return WriteHot(w, s, hot(s, 2, 100, 20)) }},
		{"hot-single.txt", func(w io.Writer) error { return WriteHot(w, s, hot(s, 1, 1, 1)) }},
		{"hot-long.txt", func(w io.Writer) error { return WriteHot(w, s, hot(s, 40, 100, 5000)) }},
		{"hot-none.txt", func(w io.Writer) error { return WriteHot(w, s, hot(s, 2, 100, 1<<40)) }},
		{"hot.json", func(w io.Writer) error { return WriteHotJSON(w, s, hot(s, 2, 2, 1500)) }},
		{"hot-none.json",
			func(w io.Writer) error { return WriteHotJSON(w, s, hot(s, 2, 2, 1<<40)) }},
		{"stat.txt", func(w io.Writer) error { return WriteStat(w, statOf(t, s)) }},
		{"stat.json", func(w io.Writer) error { return WriteStatJSON(w, statOf(t, s)) }},
		{"routines.tsv", func(w io.Writer) error { return WriteRoutines(w, s) }},
	}
	for _, form := range textForms() {
		tests = append(tests, struct {
			name  string
			write func(w io.Writer) error
		}{"dump-" + string(form) + ".txt",
			func(w io.Writer) error { return Dump(w, shortCompressor(), form, Whole()) }})
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { checkGolden(t, tt.name, tt.write) })
	}
}

// shortCompressor is compressor with three turns of its loop.
func shortCompressor() *wpp.Snapshot {
	s := querytest.Compressor()
	s.Threads[0].Grammar = wpptest.GrammarOf(0, 1, 14, 2, 2, 3, 1, 14, 2, 2, 3, 1, 14,
		2, 2, 3, 12, 4, 5)
	return s
}

func TestHotTableIsNoWiderThanItSays(t *testing.T) {
	s := querytest.Compressor()
	r, err := query.Hot(s, query.HotQuery{MinLength: 1, MaxLength: 100, MinCost: 1,
		Metric: query.Instructions})
	if err != nil {
		t.Fatal(err)
	}
	var table bytes.Buffer
	if err := WriteHot(&table, s, r); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(table.String()) {
		if utf8.RuneCountInString(line) > TableColumns+1 {
			t.Errorf("line of %d columns: %s", utf8.RuneCountInString(line)-1, line)
		}
	}
}
