package rules

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"wpptrace/compress/sequitur"
	"wpptrace/compress/wpp"
	"wpptrace/query/querytest"
)

// TestPrefixesEqualBruteForce: what is asked of the beginnings of traces is answered as their
// expansion does.
func TestPrefixesEqualBruteForce(t *testing.T) {
	lengths := []int{1, 60, 700, 3000}
	for name, whole := range querytest.Beginnings(t, slices.Max(lengths)) {
		for _, length := range lengths {
			t.Run(fmt.Sprint(name, " ", length), func(t *testing.T) {
				stream := whole[:min(length, len(whole))]
				folding := sequitur.NewFolding() // as wpptrace does
				folding.AppendAll(stream)
				g := wpp.FromSequitur(folding)
				random := rand.New(rand.NewPCG(9, uint64(length)))
				for range 4 {
					abc := []uint32{random.Uint32N(slices.Max(stream) + 2),
						stream[random.IntN(len(stream))], stream[random.IntN(len(stream))]}
					random.Shuffle(len(abc), func(i, j int) { abc[i], abc[j] = abc[j], abc[i] })
					s := querytest.Spelled(g, slices.Max(append(abc, stream...)), abc)
					for _, items := range []string{"ab", "a.b", "a~b", "ba~c", "b~.a", "a"} {
						checkFind(t, s, items, 4, 1+random.IntN(3))
					}
					checkRules(t, s, random.IntN(3))
					if querytest.Letter(s, 'a') != querytest.Letter(s, 'b') {
						checkOrder(t, s)
					}
				}
			})
		}
	}
}
