package guard_test

import (
	"log"
	"os"

	"github.com/cilium/ebpf"

	"wpptrace/loader/guard"
	"wpptrace/loader/target"
	"wpptrace/loader/uprobe"
)

// The guard of a process puts probes in and takes them out, and lets the process go on where it has
// been stopped.
func ExampleStart() {
	guard.Main()                    // first in main: the guard is this program, started again
	var p *target.Process           // to be opened
	var executable *os.File         // of the process
	var hit *ebpf.Program           // that probes run
	var signals, ends *ebpf.Program // that see the signals of the process, and its end
	var stops *ebpf.Map             // what they have stopped
	g, err := guard.Start(p)
	if err != nil {
		log.Fatal(err)
	}
	defer g.Close()
	w, err := g.Watch(stops, signals, ends)
	if err != nil {
		log.Fatal(err)
	}
	defer w.Close()
	probes, err := g.Probe(uprobe.Detect(), executable, hit, []uint64{0x1139}, []uint64{1}, p.PID,
		guard.AnyCPU)
	if err != nil {
		log.Fatal(err)
	}
	defer probes.Close()
	if err := w.Resume(p.PID); err != nil {
		log.Fatal(err)
	}
}
