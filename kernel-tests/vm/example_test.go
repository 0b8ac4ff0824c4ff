package vm_test

import (
	"context"
	"fmt"
	"log"

	"wpptrace/kernel-tests/vm"
)

// Which kernel Debian's 6.12 is, by its own word.
func ExampleMachine_Run() {
	ctx := context.Background()
	kernel, err := vm.Kernels()[1].Fetch(ctx, "/var/cache/kernels")
	if err != nil {
		log.Fatal(err)
	}
	m := vm.Machine{Kernel: kernel, Files: []string{"/bin/uname"},
		Command: []string{"/bin/uname", "-r"}}
	status, err := m.Run(ctx, func(line string) { fmt.Println(line) })
	if err != nil || status != 0 {
		log.Fatal(status, err)
	}
}
