package cluster_test

import (
	"fmt"

	"wpptrace/query/cluster"
)

func ExampleCompare() {
	before := cluster.Of([]cluster.Window{{20, 100}, {25, 120}, {18, 90}, {22, 100}})
	after := cluster.Of([]cluster.Window{{31, 100}, {30, 110}, {24, 90}, {30, 95}})
	d, _ := cluster.Compare(before, after)
	fmt.Printf("%.3f to %.3f: %+.3f, from %+.3f to %+.3f\n", before.Value, after.Value, d.Value,
		d.Lo, d.Hi)
	// Output: 0.207 to 0.291: +0.084, from +0.046 to +0.121
}
