package jumptable_test

import (
	"fmt"

	"wpptrace/loader/cfg/jumptable"
)

// Where the jump of a switch with four cases leads. The routine has three blocks as yet: the bounds
// check, the jump, and what runs where the check fails.
func ExampleResolve() {
	p := newProgram(switchOn, caseAt, caseAt+2, caseAt+1, caseAt)
	in, jumps := p.input(1000)
	found, _ := jumptable.Resolve(in, jumps)
	for jump, table := range found {
		fmt.Printf("the jump at %#x, checked in block %d\n", p.addrs[jump], table.Check.Block)
		for index, to := range table.Targets {
			fmt.Printf("%d: %#x\n", index, p.addrs[to])
		}
	}
	// Output:
	// the jump at 0x1015, checked in block 0
	// 0: 0x1018
	// 1: 0x101a
	// 2: 0x1019
	// 3: 0x1018
}
