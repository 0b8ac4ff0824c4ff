package loads_test

import (
	"fmt"

	"wpptrace/loader/loads"
)

// memory is a process with one word in it.
type memory struct{ at, word uint64 }

func (m memory) Read(addr uint64, to []byte) bool {
	if addr != m.at || len(to) != 8 {
		return false
	}
	for i := range to {
		to[i] = byte(m.word >> (8 * i))
	}
	return true
}

func (m memory) Continuation(uint64) (step uint32, ok bool) { return 0, false }
func (m memory) Bias(int) uint64                            { return 0 }

func ExamplePlan_Run() {
	p := &loads.Plan{
		Looks: []loads.Look{{First: [2]uint32{1}}},
		Steps: []loads.Step{
			{Op: loads.End},
			{Op: loads.Fetch, A: 7, B: loads.NoCell, Imm: 16, Size: 8}, // of rdi + 16
			{Op: loads.End},
		},
	}
	var registers [17]uint64
	registers[7] = 0x1000
	p.Run(0, 0, true, &registers, 0, memory{0x1010, 42}, func(r *loads.Read) {
		fmt.Printf("%d bytes at %#x: %d\n", r.Size, r.Addr, r.Bytes[0])
	})
	// Output: 8 bytes at 0x1010: 42
}
