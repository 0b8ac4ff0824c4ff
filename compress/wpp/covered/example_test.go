package covered_test

import (
	"fmt"
	"log"

	"wpptrace/compress/wpp/covered"
)

func ExampleCoverage_Merge() {
	run := func(first, second covered.State) *covered.Coverage {
		return &covered.Coverage{Images: []covered.Image{{
			Name: "prog", BuildID: []byte{0x17}, Files: []string{"prog.c"},
			Routines: []covered.Routine{{Name: "main", Addr: 0x1000}},
			Blocks: []covered.Block{
				{Addr: 0x1000, Ran: first, Lines: []covered.Line{{Line: 3}}},
				{Addr: 0x1010, Ran: second, Lines: []covered.Line{{Line: 4}}},
			},
		}}}
	}
	all := run(covered.Run, covered.NotRun)
	if err := all.Merge(run(covered.NotRun, covered.NotRun)); err != nil {
		log.Fatal(err)
	}
	for _, line := range all.Sources()[0].Lines {
		fmt.Println(line.Line, line.Ran)
	}
	// Output:
	// 3 true
	// 4 false
}
