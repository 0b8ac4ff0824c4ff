package bpf_test

import (
	"fmt"

	"wpptrace/bpf"
)

func ExampleNewCallTable() {
	table, err := bpf.NewCallTable([]bpf.TracerCall{{Address: 0x1139, Depth: 16},
		{Address: 0x1150, Depth: 32, Reported: 1}}, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	for i, c := range table.Entries {
		if c.Address != 0 {
			fmt.Printf("entry %d: %x, depth %d\n", i, c.Address, c.Depth)
		}
	}
	fmt.Println("shift", table.Shift)
	// Output:
	// entry 1: 1150, depth 32
	// entry 7: 1139, depth 16
	// shift 29
}
