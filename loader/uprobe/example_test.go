package uprobe_test

import (
	"log"
	"os"

	"github.com/cilium/ebpf"

	"wpptrace/loader/uprobe"
)

// A program is loaded for the mechanism by which probes will go in, and put at an address of a
// file.
func ExampleMechanism_Put() {
	var spec *ebpf.ProgramSpec // made for uprobe_multi links
	var file *os.File          // that the process runs
	mechanism := uprobe.Detect()
	mechanism.Prepare(spec)
	program, err := ebpf.NewProgram(spec)
	if err != nil {
		log.Fatal(err)
	}
	probes, err := mechanism.Put(file, program, []uint64{0x1139}, []uint64{1}, os.Getpid())
	if err != nil {
		log.Fatal(err)
	}
	defer probes.Close()
}
