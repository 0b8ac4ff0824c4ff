package report

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"wpptrace/compress/ops"
	"wpptrace/compress/ppcompress"
	"wpptrace/compress/spill"
	"wpptrace/compress/wpp"
	"wpptrace/query"
	"wpptrace/query/querytest"
)

func TestDumpSymbols(t *testing.T) {
	want := strings.Repeat("\x01\x00\x00\x00\xff\xff\xff\x7f", 100) + "\x00\x00\x00\x00"
	s := querytest.BareSymbols(t, want)
	var got bytes.Buffer
	if err := Dump(&got, s, Symbols, Whole()); err != nil || got.String() != want {
		t.Errorf("%v, %q", err, got.String())
	}
	limit := querytest.LimitedWriter(100)
	if err := Dump(&limit, s, Symbols, Whole()); err == nil {
		t.Error("no error of the writer")
	}
}

// What is no stream of bare symbols is refused: nothing is written.
func TestNoSymbols(t *testing.T) {
	const text = "\x01\x00\x00\x00"
	marked := querytest.BareSymbols(t, text)
	marked.Symbols = append(marked.Symbols, wpp.Symbol{IsMark: true, Mark: ops.Gap})
	large := querytest.BareSymbols(t, text)
	large.Symbols[0].Path = 1 << 32
	two := querytest.BareSymbols(t, text)
	two.Threads = append(two.Threads, two.Threads[0])
	for name, c := range map[string]struct {
		s    *wpp.Snapshot
		want string
	}{
		"several routines": {querytest.Compressor(), errNoSymbols.Error()},
		"marks":            {marked, errNoSymbols.Error()},
		"64 bits":          {large, errNoSymbols.Error()},
		"several threads":  {two, "2 threads, where bare symbols are one stream: select a thread"},
	} {
		var out bytes.Buffer
		if err := Dump(&out, c.s, Symbols, Whole()); err == nil ||
			err.Error() != "dump as symbols: "+c.want || out.Len() > 0 {
			t.Errorf("%s: %v, %d bytes", name, err, out.Len())
		}
	}
}

// Everything can be asked of a snapshot that knows no instructions.
func TestQueriesWithoutInstructions(t *testing.T) {
	s := querytest.BareSymbols(t, strings.Repeat("\x01\x00\x00\x00\x02\x00\x00\x00", 3))
	for form, want := range map[Form]string{
		Insns: "", Blocks: "",
		Paths: strings.Repeat("0\tsymbols\t1\tloop\tloop\t-\n0\tsymbols\t2\tloop\tloop\t-\n", 3),
		Ops:   "EnterThread 0\n" + strings.Repeat("NewPath 1\nNewPath 2\n", 3),
	} {
		var out bytes.Buffer
		if err := Dump(&out, s, form, Whole()); err != nil || out.String() != want {
			t.Errorf("%s: %v, %q", form, err, out.String())
		}
	}
	x := statOf(t, s)
	if x.Paths != 6 || x.DistinctPaths != 2 || x.Instructions != 0 || x.TraceBytes != 14 {
		t.Errorf("%+v", x)
	}
	var out bytes.Buffer
	for _, metric := range []query.Metric{query.Executions, query.Instructions} {
		q := query.DefaultHotQuery()
		q.Metric, q.MinShare = metric, 0.9
		report, err := query.Hot(s, q)
		if err != nil {
			t.Fatal(err)
		}
		if err := WriteHot(&out, s, report); err != nil {
			t.Fatal(err)
		}
	}
	if got := out.String(); !strings.HasPrefix(got,
		"Trace: numbers (1 thread)\nTotal: 6 paths\n") || !strings.Contains(got,
		"symbols#1  numbers\n") {
		t.Error(got)
	}
	if err := WritePath(io.Discard, s, "symbols#2"); err != nil {
		t.Error(err)
	}
}

func ExampleDump_symbols() {
	s, err := ppcompress.Symbols(strings.NewReader("\x01\x00\x00\x00\x02\x00\x00\x00"), "numbers",
		spill.New(nil, spill.Limits{}))
	if err != nil {
		fmt.Println(err)
		return
	}
	var out bytes.Buffer
	err = Dump(&out, s, Symbols, Whole())
	fmt.Printf("% x %v\n", out.Bytes(), err)
	// Output: 01 00 00 00 02 00 00 00 <nil>
}
