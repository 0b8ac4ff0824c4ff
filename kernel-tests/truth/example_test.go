package truth_test

import (
	"context"
	"fmt"
	"strings"

	"wpptrace/kernel-tests/truth"
)

func ExampleRun() {
	trace, err := truth.Run(context.Background(),
		truth.Options{Path: "/bin/sh", Args: []string{"-c", "echo hello; exit 2"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s%d threads, exit %d, more than 1000 instructions: %t\n", trace.Stdout,
		len(trace.Threads), trace.Exit, trace.Total() > 1000)
	// Output:
	// hello
	// 1 threads, exit 2, more than 1000 instructions: true
}

func ExampleThread_Split() {
	thread := truth.Thread{
		Insns: []uint64{0x10, 0x14, 0x80, 0x84, 0x18},
		Events: []truth.Event{
			{Index: 2, Kind: truth.Delivered, Signal: 14},
			{Index: 4, Kind: truth.Returned},
		},
	}
	main, handlers := thread.Split()
	fmt.Printf("%x %x\n", main, handlers[0].Insns)
	// Output: [10 14 18] [80 84]
}

func ExampleCompare() {
	routines, err := truth.ParseRoutines(strings.NewReader("prog\t10\t20\tobserved\tmain\n"),
		"prog")
	if err != nil {
		fmt.Println(err)
		return
	}
	record, err := truth.ParseInsns(strings.NewReader("7 prog 10\n7 prog 18\n"), "prog")
	if err != nil {
		fmt.Println(err)
		return
	}
	want := &truth.Trace{Threads: []*truth.Thread{{Insns: []uint64{0x4, 0x10, 0x14, 0x18}}}}
	fmt.Println(truth.Compare(record, want, routines, truth.Exact))
	// Output:
	// thread 0 (id 7): instruction 1 differs
	//   record:
	//       10 main+0
	//    => 18 main+8
	//   truth:
	//       10 main+0
	//    => 14 main+4
	//       18 main+8
}

func ExampleCover() {
	routines, err := truth.ParseRoutines(strings.NewReader("prog\t10\t20\tobserved\tmain\n"+
		"prog\t20\t30\tleft-out:no CFA\tstart\n"), "prog")
	if err != nil {
		fmt.Println(err)
		return
	}
	thread := &truth.Thread{Insns: []uint64{0x10, 0x14, 0x18, 0x20}}
	c := truth.Cover(&truth.Trace{Threads: []*truth.Thread{thread}}, routines)
	fmt.Printf("%.0f %% traced, %s missed: %s\n", 100*c.Share(), c.Missed[0].Routine.Name,
		c.Missed[0].Routine.Reason)
	// Output: 75 % traced, start missed: no CFA
}
