package guard_test

import (
	"fmt"

	"github.com/cilium/ebpf"

	"wpptrace/loader/guard"
	"wpptrace/loader/target"
)

// A process is watched over while a BPF program may stop it, and goes on when what it has said has been read.
func ExampleStart() {
	watch := func(p *target.Process, stops *ebpf.Map) error {
		g, err := guard.Start(p, stops)
		if err != nil {
			return err
		}
		defer g.Close()
		return g.LetGo()
	}
	fmt.Println(watch != nil)
	// Output: true
}
