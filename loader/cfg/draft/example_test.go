package draft_test

import (
	"fmt"

	"wpptrace/loader/cfg"
	"wpptrace/loader/cfg/absint"
	"wpptrace/loader/cfg/draft"
	"wpptrace/loader/cfg/sweep"
	"wpptrace/loader/image"
)

func ExampleNew() {
	code := []byte{0x85, 0xff, 0x74, 0x01, 0x90, 0xc3} // test %edi,%edi; je to the ret; nop; ret
	im := &image.Image{
		Sections: []image.Section{{Name: ".text", Addr: 0x1000, Data: code, Exec: true}},
		Ranges: []image.Range{image.NewRange(0x1000, 0x1006,
			image.Row{PC: 0x1000, CFA: absint.EntryCFA})},
	}
	c, err := sweep.Decode(im)
	if err != nil {
		fmt.Println(err)
		return
	}
	drafts := draft.New(sweep.ReadFile(im, c))
	drafts.Build(1000)
	blocks := drafts.Routines[0].Blocks
	fmt.Println(len(blocks), blocks[0].End == cfg.Jcc, blocks[0].Succ)
	// Output: 3 true [2 1]
}
