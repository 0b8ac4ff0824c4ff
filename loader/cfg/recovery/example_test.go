package recovery_test

import (
	"fmt"

	"wpptrace/loader/cfg/absint"
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

func ExampleCounter_RoundsTo() {
	// again: add $8, %rdi; cmp %rsi, %rdi; jne again
	const rsi, rdi = 6, 7
	before := absint.Unchanged()
	c := absint.Counter{Reg: rdi, Width: 64, Step: 8, Exact: true, Limit: before.At(rsi), Lead: 8}
	rounds, ok := c.RoundsTo(0x6040-0x6000, 64) // rsi-rdi, before the loop
	fmt.Println(rounds, ok)
	_, ok = c.RoundsTo(0x6044-0x6000, 64)
	fmt.Println("comes to its limit:", ok)
	// Output:
	// 8 true
	// comes to its limit: false
}
