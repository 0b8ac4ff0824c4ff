package source_test

import (
	"fmt"
	"log/slog"

	"wpptrace/compress/wpp"
	"wpptrace/internal/record/source"
)

func ExampleTable() {
	troubles := source.NewTroubles(slog.New(slog.DiscardHandler))
	table := source.NewTable(troubles)
	s := &wpp.Snapshot{} // with the routines and the symbols of a recording
	table.AddTo(s, nil)
	fmt.Println(s.EachLine, len(s.Files), len(troubles.News()))
	// Output: true 0 0
}
