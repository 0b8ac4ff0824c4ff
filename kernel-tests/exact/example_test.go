package exact_test

import (
	"context"
	"fmt"
	"os"

	"wpptrace/kernel-tests/exact"
)

// Hold the record of a program against what single-stepping sees of it.
func ExampleProve() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	tracer, err := exact.Build(context.Background(), dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	target := exact.Target{Path: "/bin/true", Env: []string{"LC_ALL=C"}}
	proof, err := exact.Prove(context.Background(), tracer, target, exact.Expect{Limit: 100_000})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("exact, %.0f %% of the program's own instructions traced\n",
		100*proof.Default.Share())
	// Output: exact, 100 % of the program's own instructions traced
}
