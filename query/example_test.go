package query_test

import (
	"fmt"
	"os"
	"strings"

	"wpptrace/compress/sequitur"
	"wpptrace/compress/wpp"
	"wpptrace/query"
	"wpptrace/query/querytest"
	"wpptrace/query/report"
)

func ExampleBlockCounts() {
	blocks, entries, err := query.BlockCounts(querytest.TracedLoop(), 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("entered", entries[0x1000], "times; its blocks ran", blocks[0x1000], "and",
		blocks[0x1008], "times")
	// Output:
	// entered 1 times; its blocks ran 5 and 2 times
}

func ExampleHot() {
	s := querytest.TracedLoop()
	q := query.DefaultHotQuery()
	q.MinShare = 0.5
	found, err := query.Hot(s, q)
	if err != nil {
		fmt.Println(err)
		return
	}
	report.WriteHot(os.Stdout, s, found)
	// Output:
	// Command: spin 2 (pid 4711, 1 thread)
	// Total: 16 instructions in 5 paths
	// Showing 3 of 3 minimal hot subpaths, which cover 100.00%
	// Hot: 2 to 100 paths long, at a cost of 8 instructions or more
	//
	//   SHARE     CUM.  COUNT  LEN  SUBPATH
	//  87.50%   87.50%      2    2  spin#1  spin.c:7-8
	//                               spin#2  spin.c:7-11
	//  75.00%   87.50%      1    3  spin#2  spin.c:7-11
	//                               spin#1  spin.c:7-8
	//                               spin#2  spin.c:7-11
	//  56.25%  100.00%      1    3  spin#0  spin.c:7-8
	//                               spin#1  spin.c:7-8
	//                               spin#2  spin.c:7-11
}

// The first turn of the loop misses the cache.
func ExampleReadCosts() {
	measured := "path,before,misses\nspin#1,,1\nspin#2,spin#1,3\nspin#1,spin#0,90\n"
	table, err := query.ReadCosts(strings.NewReader(measured), "misses")
	if err != nil {
		fmt.Println(err)
		return
	}
	s := querytest.TracedLoop()
	found, err := query.Hot(s,
		query.HotQuery{MinLength: 2, MaxLength: 2, MinShare: 0.05, Table: table})
	if err != nil {
		fmt.Println(err)
		return
	}
	report.WriteHot(os.Stdout, s, found)
	// Output:
	// Command: spin 2 (pid 4711, 1 thread)
	// Total: 97 misses in 5 paths
	// Without a cost, taken as 0: 1 path; costs of what did not run: 0 rows
	// Showing 2 of 2 minimal hot subpaths, which cover 95.88%
	// Hot: 2 paths long, at a cost of 5 misses or more
	//
	//   SHARE     CUM.  COUNT  LEN  SUBPATH
	//  95.88%   95.88%      1    2  after spin#0
	//                               spin#1  spin.c:7-8
	//                               spin#2  spin.c:7-11
	//  92.78%   95.88%      1    2  spin#0  spin.c:7-8
	//                               spin#1  spin.c:7-8
}

func ExampleNewFrequencies() {
	f, err := query.NewFrequencies(querytest.TracedLoop())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(f.Symbol(1))
	// Output: 2
}

func ExampleNewStat() {
	x, err := query.NewStat(querytest.TracedLoop(), 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(x.Paths, "paths,", x.Instructions, "instructions,", x.Rules, "rules")
	// Output: 5 paths, 16 instructions, 2 rules
}

func ExampleCountInstructions() {
	fmt.Println(query.CountInstructions(querytest.TracedLoop()))
	// Output: 16 <nil>
}

func ExampleContextOf() {
	s := querytest.TracedLoop()
	c, err := query.ContextOf(s, "spin#1", 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	report.WriteContext(os.Stdout, s, c, 0)
	// Output:
	// spin#1 ran 2 times
	//
	//        COUNT    SHARE  BEFORE (2 of 2)
	//            1   50.00%  spin#0
	//            1   50.00%  spin#2
	//
	//        COUNT    SHARE  AFTER (1 of 1)
	//            2  100.00%  spin#2
}

func ExampleDiff() {
	before, after := querytest.TracedLoop(), querytest.TracedLoop()
	before.Images[0].BuildID, after.Images[0].BuildID = []byte{1}, []byte{1}
	g := sequitur.New()
	g.AppendAll([]uint32{0, 1, 1, 1})
	after.Threads[0].Grammar = wpp.FromSequitur(g)
	found, err := query.Diff(before, after, query.DiffQuery{Hot: query.DefaultHotQuery(), Top: 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	report.WriteDiff(os.Stdout, before, after, found)
	// Output:
	// Total: 16 instructions, then 8 instructions
	// Showing 1 of 1 routine that changed
	//
	// CHANGE            COST       COUNT        THEN  ROUTINE
	// colder              -8           5           4  spin
	//
	// Showing 2 of 2 paths that changed
	//
	// CHANGE            COST       COUNT        THEN  PATH
	// gone               -10           2           0  spin#2
	// hotter              +2           2           3  spin#1
	//
	// Showing 2 of 3 hot subpaths that changed
	//
	// CHANGE            COST       COUNT        THEN  SUBPATH
	// gone               -14           2           0  spin#1
	//                                                 spin#2
	// gone                -7           1           0  spin#2
	//                                                 spin#1
}

func ExampleGrowth() {
	points, err := query.Growth(querytest.TracedLoop().Threads[0].Grammar, 5)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, p := range points {
		fmt.Println(p.Position, "symbols:", p.Rules, "rules of", p.Symbols)
	}
	// Output:
	// 1 symbols: 1 rules of 1
	// 2 symbols: 2 rules of 4
	// 3 symbols: 2 rules of 4
	// 4 symbols: 2 rules of 5
	// 5 symbols: 2 rules of 5
}

func ExampleNaturalMetric() {
	s := querytest.TracedLoop()
	m := query.NaturalMetric(s)
	fmt.Println("spin#2 costs", m.CostOf(s, 2), m)
	// Output: spin#2 costs 5 instructions
}
