package memory_test

import (
	"fmt"

	"wpptrace/compress/wet/machine"
	"wpptrace/compress/wet/memory"
)

// What a thread has stored is known until external code has run, unless it is private.
func Example() {
	var m memory.Memory
	m.Store(0x1000, []byte{1, 2}, machine.Confirmed, false)
	m.Store(0x2000, []byte{3, 4}, machine.Confirmed, true)
	m.Lose()
	b := make([]byte, 2)
	fmt.Printf("%+v\n", m.Load(0x1000, b, false))
	fmt.Printf("%+v %v\n", m.Load(0x2000, b, true), b)
	// Output:
	// {Held:3 Known:0 Confirmed:0}
	// {Held:3 Known:3 Confirmed:3} [3 4]
}
