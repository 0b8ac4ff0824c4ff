package soundness_test

import (
	"fmt"

	"wpptrace/loader/cfg/absint"
	"wpptrace/loader/cfg/draft"
	"wpptrace/loader/cfg/soundness"
	"wpptrace/loader/cfg/sweep"
	"wpptrace/loader/image"
	"wpptrace/loader/x86"
)

// A routine that pushes something and returns by it.
func ExampleCheck() {
	code := []byte{0x50, 0xc3} // push %rax; ret
	im := &image.Image{
		Sections: []image.Section{{Name: ".text", Addr: 0x1000, Data: code, Exec: true}},
		Ranges: []image.Range{image.NewRange(0x1000, 0x1002,
			image.Row{PC: 0x1000, CFA: absint.EntryCFA},
			image.Row{PC: 0x1001, CFA: image.CFA{Reg: x86.DwarfRSP, Off: 16}},
		)},
	}
	c, err := sweep.Decode(im)
	if err != nil {
		fmt.Println(err)
		return
	}
	drafts := draft.New(sweep.ReadFile(im, c))
	drafts.Build(1000)
	fmt.Println(soundness.Check(drafts).At(0x1000).LeftOut)
	// Output: returns elsewhere than to its caller at 1001
}
