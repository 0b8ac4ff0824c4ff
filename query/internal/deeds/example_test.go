package deeds_test

import (
	"fmt"

	"wpptrace/compress/wet/machine"
	"wpptrace/query/internal/deeds"
	"wpptrace/query/querytest"
)

// A printer prints the deeds that it is given, with what is known of them.
type printer struct{}

func (printer) Read(d *deeds.Deed) error {
	switch d.Kind {
	case deeds.Called:
		fmt.Printf("%d: called with %d, %d\n", d.At.Position, d.Arguments[0].Is, d.Arguments[1].Is)
	case deeds.Returned:
		if d.Result.Known == machine.Unknown {
			fmt.Printf("%d: returned, not known what\n", d.At.Position)
		} else {
			fmt.Printf("%d: returned %d\n", d.At.Position, d.Result.Is)
		}
	case deeds.Used:
		for _, x := range d.Accesses {
			if x.At != machine.Unknown {
				fmt.Printf("%d: %d bytes at %#x\n", d.At.Position, x.Size, x.Addr)
			}
		}
	}
	return nil
}

func (printer) Forget()      { fmt.Println("nobody knows what ran") }
func (printer) IsIdle() bool { return false }

func ExampleDeeds_Read() {
	d, err := deeds.Of(querytest.Values(), deeds.Asked{Names: []string{"clip"}, Uses: true,
		Returns: true, IsFirst: func(deeds.Kind, int) bool { return true }})
	if err == nil {
		err = d.Read(0, printer{})
	}
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// 0: called with 7, 5
	// 0: returned, not known what
	// 0: 8 bytes at 0x7000
	// 1: called with 3, 5
	// 1: returned, not known what
	// 1: 8 bytes at 0x7000
}
