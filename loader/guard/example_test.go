package guard_test

import (
	"log"

	"github.com/cilium/ebpf"

	"wpptrace/loader/guard"
	"wpptrace/loader/target"
)

// A process is watched over while a BPF program may stop it, and goes on when what it has said has been read. It needs a program that calls
// guard.Stand where it is started with guard.Command.
func ExampleStart() {
	var p *target.Process     // to be opened
	var signals *ebpf.Program // sees its signals
	var stops *ebpf.Map       // of the program
	g, err := guard.Start(p, signals, stops)
	if err != nil {
		log.Fatal(err)
	}
	defer g.Close()
	if err := g.LetGo(); err != nil {
		log.Fatal(err)
	}
}
