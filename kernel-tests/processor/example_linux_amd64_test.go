package processor_test

import (
	"fmt"
	"log"
	"os"

	"wpptrace/kernel-tests/processor"
)

func ExampleProcessor_Run() {
	dir, err := os.MkdirTemp("", "processor")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	p, err := processor.Start(dir)
	if err != nil {
		log.Fatal(err)
	}
	defer p.Close()
	c := &processor.Case{Code: []byte{0x48, 0x01, 0xd8}} // add %rbx,%rax
	c.Before.Registers[0], c.Before.Registers[3], c.Before.MXCSR = 2, 3, 0x1f80
	divide := &processor.Case{Code: []byte{0xf7, 0xf1}} // div %ecx
	divide.Before.MXCSR = 0x1f80
	if err := p.Run([]*processor.Case{c, divide}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(c.After.Registers[0], c.After.Signal, divide.After.Signal)
	// Output: 5 0 8
}
