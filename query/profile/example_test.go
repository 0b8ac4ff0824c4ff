package profile_test

import (
	"fmt"
	"os"

	"wpptrace/query/profile"
	"wpptrace/query/querytest"
	"wpptrace/query/report"
)

func ExampleFlat() {
	s := querytest.TracedLoop()
	flat, err := profile.Flat(s)
	if err != nil {
		fmt.Println(err)
		return
	}
	report.WriteFlat(os.Stdout, s, flat, 0)
	// Output:
	// Command: spin 2 (pid 4711, 1 thread)
	// Total: 16 instructions in 5 paths
	// Showing 1 of 1 routine, by share of instructions
	//
	//   SHARE  CALLS  PATHS  ROUTINE  HOTTEST PATH
	// 100.00%      1      5  spin     #2 62% spin.c:7-11
}

func ExampleCallersOf() {
	s := querytest.Compressor()
	callers, err := profile.CallersOf(s, "longest_match...int)")
	if err != nil {
		fmt.Println(err)
		return
	}
	report.WriteCallers(os.Stdout, s, callers, 0)
	// Output:
	// longest_match...int) was called 100 times, by 1 caller
	//
	// COUNT    SHARE  CALLER  WHERE
	//   100  100.00%  main    main.c:10
}

func ExampleLines() {
	s := querytest.InlinedCompressor()
	lines, err := profile.Lines(s, "main.c")
	if err != nil {
		fmt.Println(err)
		return
	}
	report.WriteLines(os.Stdout, s, lines, report.Source{})
	// Output:
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

func ExampleListings() {
	list, err := profile.Listings(querytest.TracedLoop(), "spin")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, q := range list[0].Instructions {
		fmt.Printf("%x ran %d times\n", q.Addr, q.Count)
	}
	// Output:
	// 1000 ran 5 times
	// 1004 ran 5 times
	// 1008 ran 2 times
	// 100d ran 2 times
	// 100f ran 2 times
}
