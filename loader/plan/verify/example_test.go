package verify_test

import (
	"fmt"

	"wpptrace/loader/cfg/recovery"
	"wpptrace/loader/image"
	"wpptrace/loader/plan/planner"
	"wpptrace/loader/plan/verify"
)

func ExamplePlan() {
	im, err := image.OpenFile("/usr/bin/true")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer im.Close()
	program, err := recovery.Recover(im)
	if err != nil {
		fmt.Println(err)
		return
	}
	p, err := planner.Make(program, planner.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(verify.Plan(p)), "faults")
	p.Sites[0].First = !p.Sites[0].First
	fmt.Println(len(verify.Plan(p)), "fault")
	// Output:
	// 0 faults
	// 1 fault
}

func ExampleFault_String() {
	fmt.Println(verify.Fault{Routine: "parse", Addr: 0x4010, What: "two probe-free routes",
		Ways: []verify.Way{{0x4010, 0x4030, verify.RoutineEnd},
			{0x4010, 0x4020, 0x4030, verify.RoutineEnd}}})
	// Output:
	// parse at 4010: two probe-free routes: 4010 -> 4030 -> end, and 4010 -> 4020 -> 4030 -> end
}
