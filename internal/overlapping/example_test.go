package overlapping_test

import (
	"log"
	"os"

	"wpptrace/internal/overlapping"
)

// A loop of three paths, of which two overlapping ones of degree 1 follow each.
func ExampleReport_WriteText() {
	extensions, overlaps, most := uint64(2), uint64(12), 2
	r := &overlapping.Report{Program: "prog", Degree: 1, Most: 2, Routines: []overlapping.Overlap{
		{Name: "choose", Entry: 0x4010, Paths: 12, Loops: []overlapping.Loop{{Head: 0x4018,
			Paths: 6, Extensions: &extensions, Overlaps: &overlaps, Most: &most}}}}}
	if err := r.WriteText(os.Stdout); err != nil {
		log.Fatal(err)
	}
	// Output:
	// program         prog
	// degree          1; the greatest useful one is 2
	// acyclic paths   12 in 1 routine with loops or calls
	// over loops      12 over the back edges of 1 loop
	// into calls      0 at 0 calls
	// back            0 behind these
	//
	//        ENTRY     PATHS          LOOPS          CALLS        RETURNS  MOST  ROUTINE
	//         4010        12             12              0              0     2  choose
}
