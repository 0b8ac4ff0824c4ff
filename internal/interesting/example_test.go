package interesting_test

import (
	"log"
	"os"

	"wpptrace/internal/interesting"
	"wpptrace/loader/cfg"
	"wpptrace/loader/paths"
	"wpptrace/loader/plan"
)

// Of a routine of one branch, one path is of interest.
func ExampleNumber() {
	r := &cfg.Routine{Name: "choose", Addr: 0x4010, Blocks: []cfg.Block{
		{End: cfg.Jcc, Succ: []int{1, 2}}, {End: cfg.Ret}, {End: cfg.Ret}}}
	n, err := paths.Number(r)
	if err != nil {
		log.Fatal(err)
	}
	set := &interesting.Set{Routines: []interesting.RoutineSet{
		{Routine: &plan.Routine{Routine: r}, Numbering: n, Paths: []uint64{1}}}}
	report, err := interesting.Number(set, "prog", "prog.wpp")
	if err != nil {
		log.Fatal(err)
	}
	if err := report.WriteText(os.Stdout); err != nil {
		log.Fatal(err)
	}
	// Output:
	// program         prog
	// snapshot        prog.wpp
	// interesting     1 path of 1 routine
	// counters        1 for all
	// compactness     1.00 in the median
	//
	//        ENTRY        PATHS INTERESTING    RANGE COMPACTNESS  ROUTINE
	//         4010            2           1        1        1.00  choose
}
