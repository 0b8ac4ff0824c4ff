package memory_test

import (
	"fmt"

	"wpptrace/compress/wet/machine"
	"wpptrace/compress/wet/memory"
)

// What a thread has stored is confirmed until other code may have run.
func Example() {
	var m memory.Memory
	m.Store(0x1000, []byte{1, 2}, machine.Confirmed)
	b := make([]byte, 4)
	fmt.Printf("%+v\n", m.Load(0x1000, b))
	m.Doubt()
	fmt.Println(m.Load(0x1000, b[:2]).Knowledge(2) == machine.Unconfirmed, b[:2])
	// Output:
	// {Held:3 Known:3 Confirmed:3}
	// true [1 2]
}
