package listing_test

import (
	"fmt"
	"os"

	"wpptrace/internal/listing"
	"wpptrace/query/querytest"
)

// The file is gone: what is known of its lines is printed, and that.
func ExampleLines() {
	s := querytest.InlinedCompressor()
	q := &listing.Question{Of: s.Files[0], Note: func(format string, args ...any) {
		fmt.Printf("%.65s...\n", fmt.Sprintf(format, args...))
	}}
	if err := listing.Lines(os.Stdout, s, q); err != nil {
		fmt.Println(err)
	}
	// Output:
	// 7 events were lost, in 1 place: this is about what was recorded...
	// /src/squeeze/main.c is not there, nor /src/squeeze/main.c: only l...
	// of each block only the first and the last line are known: lines b...
	// Source: /src/squeeze/main.c
	//
	// COUNT  LINE  SOURCE
	//   100     3
	//     1    10
	//     1    12
	//   100    14
	//     2    20
	//     1    21
}
