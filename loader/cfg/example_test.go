package cfg_test

import (
	"fmt"

	"wpptrace/loader/cfg"
)

func ExampleBlock_After() {
	jump := cfg.Block{End: cfg.Jcc, Succ: []int{2, 1}}
	leave := cfg.Block{End: cfg.Ret}
	fmt.Println(jump.After(), leave.After()[0] == cfg.Exit)
	// Output: [2 1] true
}
