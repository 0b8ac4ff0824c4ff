package target_test

import (
	"fmt"
	"os"

	"wpptrace/loader/target"
)

func ExampleOpen() {
	p, err := target.Open(os.Getpid())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Close()
	fmt.Println("alive:", p.Alive())
	// Output: alive: true
}

func ExampleStart() {
	c, err := target.Start([]string{"sh", "-c", "exit 3"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Process.Close()
	// Here it stands before its first instruction.
	c.Release()
	<-c.Done()
	fmt.Println(c.ExitStatus())
	// Output: 3 <nil>
}
