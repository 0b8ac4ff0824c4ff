package values_test

import (
	"errors"
	"fmt"
	"testing"

	"wpptrace/compress/wpp"
	"wpptrace/query"
	"wpptrace/query/querytest"
	"wpptrace/query/values"
)

// The routine stored at the same place twice: that is the stream.
func ExampleReferencesOf() {
	r, err := values.ReferencesOf(querytest.Values())
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, of := range r.List {
		fmt.Printf("%#x: %d bytes, %d reads, %d writes\n", of.Addr, of.Size, of.Reads, of.Writes)
	}
	hot, err := query.Hot(r.Trace, query.HotQuery{MinLength: 2, MaxLength: 2,
		Metric: query.Executions})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(hot.Subpaths[0].Symbols, hot.Subpaths[0].Count)
	// Output:
	// 0x7000: 8 bytes, 0 reads, 2 writes
	// [0 0] 1
}

// Each access is in a stream, or is one of those that are counted as left out; it is a symbol for
// its address.
func TestReferencesOf(t *testing.T) {
	s := querytest.Values()
	r, err := values.ReferencesOf(s, 4711)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Trace.Threads) != 1 || r.Trace.Threads[0].TID != 4711 {
		t.Fatalf("%d threads", len(r.Trace.Threads))
	}
	all := uint64(0)
	for e, err := range values.Instructions(s, 0) {
		if err != nil {
			t.Fatal(err)
		}
		all += uint64(len(e.Accesses))
	}
	in := r.Trace.Threads[0].Grammar.Length(0)
	if r.Stack != 2 || in+r.Stack != all || r.Unknown != 0 {
		t.Errorf("%d of %d accesses in the stream, %d of the stack, %d unknown", in, all, r.Stack,
			r.Unknown)
	}
	if _, err := values.ReferencesOf(s, 1); err == nil {
		t.Error("a thread that is not there has references")
	}
	if _, err := values.ReferencesOf(&wpp.Snapshot{}); !errors.Is(err, values.ErrNone) {
		t.Error(err)
	}
}
