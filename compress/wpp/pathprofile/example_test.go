package pathprofile_test

import (
	"fmt"

	"wpptrace/compress/ops"
	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/pathprofile"
)

func ExampleCounter() {
	var alphabet ops.Symbols
	counter := pathprofile.NewCounter(&alphabet)
	counter.NewPath(0, 5, 1) // as a decoder says it
	counter.NewPath(1, 0, 1000)
	counts := counter.Counts()
	counts.Threads, counts.Runs = 1, 1
	s := &wpp.Snapshot{Symbols: make([]wpp.Symbol, alphabet.Len()),
		Sections: []*wpp.Section{counts.Section()}}
	read, err := pathprofile.Of(s)
	fmt.Println(read.Of, err)
	// Output: [1 1000] <nil>
}
