package sweep_test

import (
	"fmt"

	"wpptrace/loader/cfg/absint"
	"wpptrace/loader/cfg/sweep"
	"wpptrace/loader/image"
)

func ExampleDecode() {
	code := []byte{0x90, 0xeb, 0xfd} // nop; jmp to the nop
	im := &image.Image{
		Sections: []image.Section{{Name: ".text", Addr: 0x1000, Data: code, Exec: true}},
		Ranges: []image.Range{image.NewRange(0x1000, 0x1003,
			image.Row{PC: 0x1000, CFA: absint.EntryCFA})},
	}
	c, err := sweep.Decode(im)
	if err != nil {
		fmt.Println(err)
		return
	}
	jump := c.Find(0x1001)
	fmt.Println(jump, c.Target[jump], c.Find(0x1002))
	// Output: 1 0 -1
}
