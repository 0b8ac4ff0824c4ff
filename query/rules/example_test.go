package rules_test

import (
	"fmt"
	"os"

	"wpptrace/query/querytest"
	"wpptrace/query/report"
	"wpptrace/query/rules"
)

func ExampleFind() {
	s := querytest.TracedLoop()
	found, err := rules.Find(s, rules.FindQuery{Pattern: "spin#1 *", First: 1, Top: 10})
	if err != nil {
		fmt.Println(err)
		return
	}
	report.WriteFind(os.Stdout, s, found)
	// Output:
	// 2 occurrences of spin#1 * in 1 thread
	//
	//      TID      POSITION  LENGTH  PATHS
	//     4711             1       2  spin#1 spin#2
	//     4711             3       2  spin#1 spin#2
}

func ExampleCheck() {
	s := querytest.TracedLoop()
	found, err := rules.Check(s,
		[]string{"spin() before spin#1", "never spin#2 spin#1",
			"spin#1 and spin#2 balanced within 1"})
	if err != nil {
		fmt.Println(err)
		return
	}
	report.WriteRules(os.Stdout, s, found)
	// Output:
	// kept    spin() before spin#1
	// broken  never spin#2 spin#1: 1 time
	//         thread 4711, position 2, 2 paths: ran
	//         spin#0 spin#1 [spin#2 spin#1] spin#2
	// kept    spin#1 and spin#2 balanced within 1
}

func ExampleCheck_open() {
	s := querytest.TracedLoop() // of a thread that ran on, as far as is known
	found, err := rules.Check(s, []string{"every spin#2 followed by spin#1"})
	if err != nil {
		fmt.Println(err)
		return
	}
	report.WriteRules(os.Stdout, s, found)
	// Output:
	// open    every spin#2 followed by spin#1: 1 time
	//         thread 4711, position 4, 1 path: not followed yet where the record ends
	//         spin#1 spin#2 spin#1 [spin#2]
}

func ExampleValidate() {
	fmt.Println(rules.Validate("every open() followed by close()"))
	fmt.Println(rules.Validate("never (open() close()"))
	// Output:
	// <nil>
	// rule "never (open() close()": no ) for a (
}

func ExamplePathOrder() {
	s := querytest.TracedLoop()
	o, err := rules.PathOrder(s, "spin#1", "spin#2")
	if err != nil {
		fmt.Println(err)
		return
	}
	report.WriteOrder(os.Stdout, s, o)
	// Output:
	// spin#1 before spin#2: always; 2 of 2 times had one before
	//   first in thread 4711, position 1: spin#1 spin#2
	// spin#2 before spin#1: sometimes; 1 of 2 times had one before
	//   first in thread 4711, position 2: spin#2 spin#1
}
