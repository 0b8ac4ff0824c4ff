package merge_test

import (
	"fmt"

	"wpptrace/compress/wpp"
	"wpptrace/query"
	"wpptrace/query/merge"
	"wpptrace/query/querytest"
)

func ExampleMerger() {
	monday, tuesday := querytest.Letters("abab"), querytest.Letters("bbb")
	merger := merge.New()
	for _, s := range []*wpp.Snapshot{monday, tuesday} {
		s.Images[0].BuildID = []byte{1}
		if err := merger.Add(s); err != nil {
			fmt.Println(err)
			return
		}
	}
	sum := merger.Snapshot()
	counts, err := query.NewFrequencies(sum)
	if err != nil {
		fmt.Println(err)
		return
	}
	for i := range sum.Symbols {
		fmt.Println(sum.RoutineOf(uint32(i)).Name, counts.Symbol(uint32(i)))
	}
	// Output:
	// a 2
	// b 5
}
