// Package grouped keeps numbers by what they belong to, all in two arrays.
package grouped

// Lists are numbers by what they belong to, keys from 0 on.
type Lists struct {
	end    []int32 // by key: of its values
	values []int32
}

// By groups values by key, from 0 to n-1, in the order in which each adds them. It calls each
// twice, which has to add the same both times.
func By(n int, each func(add func(key, value int32))) Lists {
	g := Lists{end: make([]int32, n)}
	each(func(key, _ int32) { g.end[key]++ })
	sum := int32(0)
	for key, count := range g.end {
		g.end[key], sum = sum, sum+count
	}
	g.values = make([]int32, sum)
	each(func(key, value int32) {
		g.values[g.end[key]] = value
		g.end[key]++
	})
	return g
}

// Of are the values that belong to a key.
func (g *Lists) Of(key int) []int32 { return g.values[g.begin(key):g.end[key]] }

// Count is how many Of returns.
func (g *Lists) Count(key int) int { return int(g.end[key] - g.begin(key)) }

func (g *Lists) begin(key int) int32 {
	if key == 0 {
		return 0
	}
	return g.end[key-1]
}
