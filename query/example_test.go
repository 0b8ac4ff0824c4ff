package query_test

import (
	"fmt"
	"os"
	"strings"

	"wpptrace/compress/ops"
	"wpptrace/compress/sequitur"
	"wpptrace/compress/wpp"
	"wpptrace/query"
)

// tracedLoop is the snapshot of a program whose loop takes path 1 and path 2 in turns.
func tracedLoop() *wpp.Snapshot {
	s := &wpp.Snapshot{
		Images: []wpp.Image{{Name: "/usr/bin/spin"}},
		Files:  []string{"/src/spin.c"},
		Routines: []wpp.Routine{{
			Name: "spin", Entry: 0x1000, Ranges: []wpp.Range{{Lo: 0x1000, Hi: 0x1010}}, Paths: 3,
			Blocks: []wpp.Block{
				{Addr: 0x1000, Lengths: []byte{4, 4}, Line: 7, Last: 8},
				{Addr: 0x1008, Lengths: []byte{5, 2, 1}, Line: 9, Last: 11},
			},
		}},
		Symbols: []wpp.Symbol{
			{Path: 0, Start: ops.StartEntry, End: ops.EndLoop, Blocks: []int{0}},
			{Path: 1, Start: ops.StartLoop, End: ops.EndLoop, Blocks: []int{0}},
			{Path: 2, Start: ops.StartLoop, End: ops.EndLoop, Blocks: []int{0, 1}},
		},
		Figures: wpp.Figures{Command: []string{"spin", "2"}, PID: 4711},
	}
	g := sequitur.New()
	for _, sym := range []uint32{0, 1, 2, 1, 2} {
		g.Append(sym)
	}
	s.Threads = []wpp.Thread{{TID: 4711, Name: "spin", Grammar: wpp.FromSequitur(g)}}
	return s
}

func ExampleBlockCounts() {
	blocks, entries, err := query.BlockCounts(tracedLoop(), 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("entered", entries[0x1000], "times; its blocks ran", blocks[0x1000], "and", blocks[0x1008], "times")
	// Output:
	// entered 1 times; its blocks ran 5 and 2 times
}

func ExampleHot() {
	s := tracedLoop()
	q := query.DefaultHotQuery()
	q.MinShare = 0.5
	report, err := query.Hot(s, q)
	if err != nil {
		fmt.Println(err)
		return
	}
	query.WriteHot(os.Stdout, s, report)
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
	s := tracedLoop()
	report, err := query.Hot(s, query.HotQuery{MinLength: 2, MaxLength: 2, MinShare: 0.05, Table: table})
	if err != nil {
		fmt.Println(err)
		return
	}
	query.WriteHot(os.Stdout, s, report)
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

func ExampleWriteJSON() {
	err := query.WriteJSON(os.Stdout, map[string]string{"name": "vector<int>::at"}, "name")
	fmt.Println(err)
	// Output:
	// {"name":"vector<int>::at"}
	// <nil>
}

func ExampleNewFrequencies() {
	f, err := query.NewFrequencies(tracedLoop())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(f.Symbol(1), f.Sequence([]uint32{1, 2}), f.Sequence([]uint32{2, 1}))
	// Output: 2 2 1
}

func ExampleDump() {
	if err := query.Dump(os.Stdout, tracedLoop(), query.Blocks); err != nil {
		fmt.Println(err)
	}
	// Output:
	// 4711 spin 1000
	// 4711 spin 1000
	// 4711 spin 1000
	// 4711 spin 1008
	// 4711 spin 1000
	// 4711 spin 1000
	// 4711 spin 1008
}

func ExampleNewStat() {
	x := query.NewStat(tracedLoop(), 0)
	fmt.Println(x.Paths, "paths,", x.Instructions, "instructions,", x.Rules, "rules")
	// Output: 5 paths, 16 instructions, 2 rules
}

func ExampleCountInstructions() {
	fmt.Println(query.CountInstructions(tracedLoop()))
	// Output: 16
}

func ExampleWriteRoutines() {
	if err := query.WriteRoutines(os.Stdout, tracedLoop()); err != nil {
		fmt.Println(err)
	}
	// Output: spin	1000	1010	observed	spin
}

func ExampleFind() {
	s := tracedLoop()
	report, err := query.Find(s, query.FindQuery{Pattern: "spin#1 *", First: 1, Top: 10})
	if err != nil {
		fmt.Println(err)
		return
	}
	query.WriteFind(os.Stdout, s, report)
	// Output:
	// 2 occurrences of spin#1 * in 1 thread
	//
	//      TID      POSITION  LENGTH  PATHS
	//     4711             1       2  spin#1 spin#2
	//     4711             3       2  spin#1 spin#2
}

func ExampleNewCursor() {
	c := query.NewCursor(tracedLoop().Threads[0].Grammar)
	c.Seek(2)
	for sym, ok := c.Previous(); ok; sym, ok = c.Previous() {
		fmt.Print(sym, " ")
	}
	// Output: 1 0
}

func ExampleRangeOf() {
	for sym := range query.RangeOf(tracedLoop().Threads[0].Grammar, 1, 4, false) {
		fmt.Print(sym, " ")
	}
	// Output: 1 2 1
}

func ExampleDumpPart() {
	if err := query.DumpPart(os.Stdout, tracedLoop(), query.Blocks, query.Part{From: 3, To: 5, Backward: true}); err != nil {
		fmt.Println(err)
	}
	// Output:
	// 4711 spin 1008
	// 4711 spin 1000
	// 4711 spin 1000
}

func ExampleCheckRules() {
	s := tracedLoop()
	report, err := query.CheckRules(s, []string{"spin() before spin#1", "never spin#2 spin#1", "spin#1 and spin#2 balanced within 1"})
	if err != nil {
		fmt.Println(err)
		return
	}
	query.WriteRules(os.Stdout, s, report)
	// Output:
	// kept    spin() before spin#1
	// broken  never spin#2 spin#1: 1 time
	//         thread 4711, position 2, 2 paths: ran
	//         spin#0 spin#1 [spin#2 spin#1] spin#2
	// kept    spin#1 and spin#2 balanced within 1
}

func ExampleCheckRules_open() {
	s := tracedLoop() // of a thread that ran on, as far as is known
	report, err := query.CheckRules(s, []string{"every spin#2 followed by spin#1"})
	if err != nil {
		fmt.Println(err)
		return
	}
	query.WriteRules(os.Stdout, s, report)
	// Output:
	// open    every spin#2 followed by spin#1: 1 time
	//         thread 4711, position 4, 1 path: not followed yet where the record ends
	//         spin#1 spin#2 spin#1 [spin#2]
}

func ExampleValidateRule() {
	fmt.Println(query.ValidateRule("every open() followed by close()"))
	fmt.Println(query.ValidateRule("never (open() close()"))
	// Output:
	// <nil>
	// rule "never (open() close()": no ) for a (
}

func ExampleWritePath() {
	if err := query.WritePath(os.Stdout, tracedLoop(), "spin#2"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// spin#2 in spin, from loop to loop: 5 instructions, ran 2 times
	//   ADDRESSES          INSNS  SOURCE
	//   1000-1004              2  /src/spin.c:7-8
	//   1008-100f              3  /src/spin.c:9-11
}

func ExamplePathOrder() {
	s := tracedLoop()
	o, err := query.PathOrder(s, "spin#1", "spin#2")
	if err != nil {
		fmt.Println(err)
		return
	}
	query.WriteOrder(os.Stdout, s, o)
	// Output:
	// spin#1 before spin#2: always; 2 of 2 times had one before
	//   first in thread 4711, position 1: spin#1 spin#2
	// spin#2 before spin#1: sometimes; 1 of 2 times had one before
	//   first in thread 4711, position 2: spin#2 spin#1
}

func ExampleNearestCommonAncestors() {
	// Figure 5 of Larus 1999, with a = 0, b = 1, c = 2: S -> AAA, A -> BC, B -> ab, C -> bc.
	a, b, c := wpp.RuleSymbol(1), wpp.RuleSymbol(2), wpp.RuleSymbol(3)
	g, err := wpp.NewGrammar([][]uint32{{a, a, a}, {b, c}, {0, 1}, {1, 2}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range query.NearestCommonAncestors(g, 0, 2) {
		fmt.Println("rule", r, "frequency", g.Uses(r))
	}
	// Output: rule 1 frequency 3
}

func ExampleContextOf() {
	s := tracedLoop()
	c, err := query.ContextOf(s, "spin#1", 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	query.WriteContext(os.Stdout, s, c, 0)
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
	before, after := tracedLoop(), tracedLoop()
	before.Images[0].BuildID, after.Images[0].BuildID = []byte{1}, []byte{1}
	g := sequitur.New()
	g.AppendAll([]uint32{0, 1, 1, 1})
	after.Threads[0].Grammar = wpp.FromSequitur(g)
	report, err := query.Diff(before, after, query.DiffQuery{Hot: query.DefaultHotQuery(), Top: 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	query.WriteDiff(os.Stdout, report)
	// Output:
	// Total: 16 instructions, then 8 instructions
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
	for _, p := range query.Growth(tracedLoop().Threads[0].Grammar, 5) {
		fmt.Println(p.Position, "symbols:", p.Rules, "rules of", p.Symbols)
	}
	// Output:
	// 1 symbols: 1 rules of 1
	// 2 symbols: 2 rules of 4
	// 3 symbols: 2 rules of 4
	// 4 symbols: 2 rules of 5
	// 5 symbols: 2 rules of 5
}

func ExampleWriteFigure8() {
	if err := query.WriteFigure8(os.Stdout, tracedLoop()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// tid,position,rules,rhs_symbols
	// 4711,1,1,1
	// 4711,2,2,4
	// 4711,3,2,4
	// 4711,4,2,5
	// 4711,5,2,5
}

func ExampleWriteFigure9() {
	s := tracedLoop()
	g := sequitur.New()
	for range 1000 {
		g.AppendAll([]uint32{1, 2})
	}
	s.Threads[0].Grammar = wpp.FromSequitur(g)
	var out strings.Builder
	if err := query.WriteFigure9(&out, s); err != nil {
		fmt.Println(err)
	}
	fmt.Println(strings.Join(strings.SplitN(out.String(), "\n", 4)[:3], "\n"))
	// Output:
	// min_cost,max_length,subpaths
	// 10000,10,2
	// 10000,20,2
}

func ExampleCaveats() {
	s := &wpp.Snapshot{
		Images:   []wpp.Image{{Name: "/usr/bin/server"}},
		Routines: []wpp.Routine{{Name: "listen", Entry: 0x1000, LeftOut: "not selected"}},
	}
	for _, caveat := range query.Caveats(s, "never listen") {
		fmt.Println(caveat)
	}
	// Output: listen was not observed (not selected): whether it ran is not known
}
