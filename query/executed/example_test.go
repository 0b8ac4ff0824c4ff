package executed_test

import (
	"fmt"

	"wpptrace/compress/wet"
	"wpptrace/compress/wet/machine"
	"wpptrace/query/executed"
)

// pop %rbx, of which the value was read but not confirmed.
func ExampleAppend() {
	load := machine.Access{Addr: 0x7ffc10, Size: 8, At: machine.Confirmed,
		Known: machine.Unconfirmed, Bytes: [64]byte{0x34, 0x12}}
	fmt.Printf("%s\n", executed.Append(nil, &wet.Executed{
		Written: []wet.Register{
			{Number: 3, Value: 0x1234, Known: machine.Unconfirmed},
			{Number: 4, Value: 0x7ffc18, Known: machine.Confirmed},
		},
		Accesses: []machine.Access{load},
	}))
	// Output: rbx=1234? rsp=7ffc18 r[7ffc10:8]=1234?
}
