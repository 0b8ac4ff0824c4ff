package paths_test

import (
	"fmt"

	"wpptrace/loader/cfg"
	"wpptrace/loader/paths"
)

// A loop whose body calls: while (more()) { if (odd) log(); }
func loop() *cfg.Routine {
	return &cfg.Routine{Name: "loop", Blocks: []cfg.Block{
		{End: cfg.Call, Succ: []int{1}},   // 0: call more
		{End: cfg.Jcc, Succ: []int{4, 2}}, // 1: no more?
		{End: cfg.Jcc, Succ: []int{0, 3}}, // 2: even?
		{End: cfg.Tail, Succ: nil},        // 3: jump to log
		{End: cfg.Ret, Succ: nil},         // 4
	}}
}

func ExampleNumber() {
	n, err := paths.Number(loop())
	if err != nil {
		fmt.Println(err)
		return
	}
	for id := range n.Total {
		p, err := n.Decode(id)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(id, p.Start, p.Blocks, p.End)
	}
	// Output:
	// 0 entry [0] call
	// 1 call [1 2 0] call
	// 2 call [1 2 3] tail
	// 3 call [1 4] return
}

func ExampleNumbering_Step() {
	n, err := paths.Number(loop())
	if err != nil {
		fmt.Println(err)
		return
	}
	id, _ := n.Begin(1, paths.StartCall)
	for _, edge := range [][2]int{{1, 2}, {2, 3}} {
		inc, _, _, _ := n.Step(edge[0], edge[1])
		id += inc
	}
	fmt.Println(id + n.Finish(3, paths.EndTail))
	// Output: 2
}

// Of the four paths of the loop, those that log and that end it are of interest.
func ExampleNumbering_Prefer() {
	n, err := paths.Number(loop())
	if err != nil {
		fmt.Println(err)
		return
	}
	p, err := n.Prefer([]uint64{2, 3})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(p.Range(), "counters:", p.Paths())
	counter, err := paths.NewCounter(p)
	if err != nil {
		fmt.Println(err)
		return
	}
	// What a program does on the way: [1 2 3], which logs, and then [1 2 0], which goes on.
	for _, blocks := range [][]int{{1, 2, 3}, {1, 2, 0}} {
		w, _ := p.Begin(1, paths.StartCall)
		from := 1
		for _, to := range blocks[1:] {
			more, _, _, _ := p.Step(from, to)
			w, from = w.Plus(more), to
		}
		end := paths.EndTail
		if from == 0 {
			end = paths.EndCall
		}
		fmt.Println(counter.Count(w.Plus(p.Finish(from, end))))
	}
	fmt.Println(counter.Of(0), counter.Of(1))
	// Output:
	// 2 counters: [{2 0} {3 1}]
	// interesting
	// alias
	// 1 0
}
