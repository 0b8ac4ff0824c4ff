package bpf_test

import (
	"fmt"

	"wpptrace/bpf"
)

func ExampleNewCallTable() {
	table, err := bpf.NewCallTable([]bpf.TracerCall{
		bpf.MakeCall(0x1139, 16, false, 0), bpf.MakeCall(0x1150, 32, true, 0),
	}, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	for i, c := range table.Entries {
		if c.Address != 0 {
			fmt.Printf("entry %d: %x, %d\n", i, c.Address, c.Info)
		}
	}
	fmt.Println("shift", table.Shift)
	// Output:
	// entry 1: 1150, 131
	// entry 7: 1139, 65
	// shift 29
}
