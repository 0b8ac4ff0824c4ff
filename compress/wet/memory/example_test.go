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
	fmt.Println(m.Load(0x1000, b))
	m.Doubt()
	known, confirmed := m.Load(0x1000, b[:2])
	fmt.Println(memory.KnowledgeOf(2, known, confirmed) == machine.Unconfirmed, b[:2])
	// Output:
	// 3 3
	// true [1 2]
}
