package counting_test

import (
	"fmt"
	"log"

	"wpptrace/loader/cfg"
	"wpptrace/loader/counting"
	"wpptrace/loader/paths"
)

// Of a routine of four paths, two are of interest: those by way of block 1. Block 3 tells them from
// each other. Where the thread's last hit was in block 1, that may have been in the activation
// before, in the same place: block 4, where each ends, tells that.
func ExampleChoose() {
	r := &cfg.Routine{Name: "twice", Blocks: []cfg.Block{
		{End: cfg.Jcc, Succ: []int{2, 1}}, // 0
		{End: cfg.Fall, Succ: []int{2}},   // 1
		{End: cfg.Jcc, Succ: []int{4, 3}}, // 2
		{End: cfg.Fall, Succ: []int{4}},   // 3
		{End: cfg.Ret},                    // 4
	}}
	n, err := paths.Number(r)
	if err != nil {
		log.Fatal(err)
	}
	interesting := []uint64{}
	for number := range n.Total {
		p, err := n.Decode(number)
		if err != nil {
			log.Fatal(err)
		}
		if p.Blocks[1] == 1 {
			interesting = append(interesting, number)
		}
	}
	answer, err := counting.Choose(counting.Question{
		Routine: r, Numbering: n, Paths: interesting,
		Site:  func(int) (counting.Site, bool) { return counting.Site{Jump: true}, true },
		Cost:  func(block int, _ counting.Site) float64 { return []float64{9, 1, 8, 7, 6}[block] },
		Twice: func(int) bool { return false },
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("probes in blocks", answer.Machine.Sites)
	// Output:
	// probes in blocks [1 3 4]
}
