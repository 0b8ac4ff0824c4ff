package report_test

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

func ExampleWriteJSON() {
	err := report.WriteJSON(os.Stdout, map[string]string{"name": "vector<int>::at"}, "name")
	fmt.Println(err)
	// Output:
	// {"name":"vector<int>::at"}
	// <nil>
}

func ExampleDump() {
	if err := report.Dump(os.Stdout, querytest.TracedLoop(), report.Blocks,
		report.Whole()); err != nil {
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

func ExampleWriteRoutines() {
	if err := report.WriteRoutines(os.Stdout, querytest.TracedLoop()); err != nil {
		fmt.Println(err)
	}
	// Output: spin	1000	1010	observed	spin
}

func ExampleDump_part() {
	if err := report.Dump(os.Stdout, querytest.TracedLoop(), report.Blocks,
		report.Part{From: 3, To: 5, Backward: true}); err != nil {
		fmt.Println(err)
	}
	// Output:
	// 4711 spin 1008
	// 4711 spin 1000
	// 4711 spin 1000
}

func ExampleWritePath() {
	if err := report.WritePath(os.Stdout, querytest.TracedLoop(), "spin#2"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// spin#2 in spin, from loop to loop: 5 instructions, ran 2 times
	//   ADDRESSES          INSNS  SOURCE
	//   1000-1004              2  /src/spin.c:7-8
	//   1008-100f              3  /src/spin.c:9-11
}

func ExampleWriteFigure8() {
	if err := report.WriteFigure8(os.Stdout, querytest.TracedLoop()); err != nil {
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
	s := querytest.TracedLoop()
	g := sequitur.New()
	for range 1000 {
		g.AppendAll([]uint32{1, 2})
	}
	s.Threads[0].Grammar = wpp.FromSequitur(g)
	var out strings.Builder
	if err := report.WriteFigure9(&out, s); err != nil {
		fmt.Println(err)
	}
	fmt.Println(strings.Join(strings.SplitN(out.String(), "\n", 4)[:3], "\n"))
	// Output:
	// min_cost,max_length,subpaths
	// 10000,10,2
	// 10000,20,2
}

func ExampleLabels() {
	s := querytest.TracedLoop()
	found, err := query.Hot(s, query.HotQuery{MinLength: 2, MaxLength: 2, MinShare: 0.5})
	if err != nil {
		fmt.Println(err)
		return
	}
	labels := report.NewLabels(s)
	for _, sym := range found.Subpaths[0].Symbols {
		l := labels.Of(sym)
		fmt.Printf("%s#%d, %s:%d-%d\n", l.Routine, l.Path, l.File, l.FirstLine, l.LastLine)
	}
	// Output:
	// spin#1, /src/spin.c:7-8
	// spin#2, /src/spin.c:7-11
}

func ExampleCaveats() {
	s := &wpp.Snapshot{
		Images:   []wpp.Image{{Name: "/usr/bin/server"}},
		Routines: []wpp.Routine{{Name: "listen", Entry: 0x1000, LeftOut: "not selected"}},
	}
	for _, caveat := range report.Caveats(s, "never listen") {
		fmt.Println(caveat)
	}
	// Output: listen was not traced (not selected): whether it ran is not known
}
