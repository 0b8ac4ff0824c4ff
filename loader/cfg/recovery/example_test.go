package recovery_test

import (
	"fmt"

	"wpptrace/loader/cfg/recovery"
	"wpptrace/loader/image"
)

func ExampleRecover() {
	im, err := image.OpenFile("/usr/bin/true")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer im.Close()
	p, err := recovery.Recover(im)
	if err != nil {
		fmt.Println(err)
		return
	}
	start := p.At(im.Entry)
	fmt.Println(len(start.Blocks), start.LeftOut == "")
	// Output: 1 true
}

func ExamplePart() {
	im, err := image.OpenFile("/usr/bin/true")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer im.Close()
	p, err := recovery.Part(im, func(c recovery.Candidate) bool {
		return c.Ranges[c.Entry][0] == im.Entry
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	start := p.At(im.Entry)
	fmt.Println(len(start.Blocks), start.LeftOut == "", len(p.Outside) > 0)
	// Output: 1 true true
}
