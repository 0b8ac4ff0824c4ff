package coverage_test

import (
	"log"
	"os"

	"wpptrace/compress/wpp/covered"
	"wpptrace/internal/coverage"
)

func ExampleWriteLCOV() {
	c := &covered.Coverage{Images: []covered.Image{{
		Name: "prog", Files: []string{"/src/prog.c"},
		Routines: []covered.Routine{{Name: "main", Symbol: "main", Addr: 0x1000,
			Place: covered.Line{Line: 3}}},
		Blocks: []covered.Block{
			{Addr: 0x1000, Ran: covered.Run, Lines: []covered.Line{{Line: 3}, {Line: 4}},
				Jump: &covered.Jump{Place: covered.Line{Line: 4},
					Outcomes: [2]covered.State{covered.Run, covered.NotRun}}},
			{Addr: 0x1010, Ran: covered.NotRun, Lines: []covered.Line{{Line: 5}}},
			{Addr: 0x1020, Ran: covered.Unknown, Lines: []covered.Line{{Line: 6}}},
		},
	}}}
	if err := coverage.WriteLCOV(os.Stdout, c); err != nil {
		log.Fatal(err)
	}
	// Output:
	// TN:
	// SF:/src/prog.c
	// FN:3,main
	// FNDA:1,main
	// FNF:1
	// FNH:1
	// BRDA:4,0,0,1
	// BRDA:4,0,1,0
	// BRF:2
	// BRH:1
	// DA:3,1
	// DA:4,1
	// DA:5,0
	// LF:3
	// LH:2
	// end_of_record
}
