package spill_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"wpptrace/compress/spill"
	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/store"
)

// A recording of one thread, whose symbols are known beforehand, with at most 64 KiB for its
// grammar.
func ExampleRecording() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "x.wpp")
	const alphabet = 1000
	tables := func(from int) (to int, complete func() (*wpp.Snapshot, error)) {
		s := &wpp.Snapshot{Images: []wpp.Image{{Name: "a.out"}},
			Routines: []wpp.Routine{{Name: "main"}}}
		for i := from; i < alphabet; i++ {
			s.Symbols = append(s.Symbols, wpp.Symbol{Path: uint64(i)})
		}
		return alphabet, func() (*wpp.Snapshot, error) { return s, nil }
	}
	r := spill.New(store.NewDraft(path), spill.Limits{Thread: 64 << 10})
	defer r.Abandon()
	r.Begin(tables)
	t := r.Thread(4711, "worker")
	for i := range uint32(10_000) {
		t.Append(i*i%alphabet, 1)
	}
	_, complete := tables(0)
	s, err := complete()
	if err != nil {
		fmt.Println(err)
		return
	}
	grammar, err := t.Copy()()
	if err != nil {
		fmt.Println(err)
		return
	}
	s.Threads = []wpp.Thread{{TID: t.TID, Name: t.Name, Grammar: grammar}}
	if err := r.Finish(context.Background(), s); err != nil {
		fmt.Println(err)
		return
	}
	read, err := store.ReadFile(path)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(slices.Collect(read.Threads[0].Grammar.Expand(0))), "symbols")
	// Output: 10000 symbols
}
