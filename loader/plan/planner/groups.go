package planner

// groups are numbers by what they belong to.
type groups struct {
	end    []int32 // by key: of its values
	values []int32
}

// grouped groups values by key, from 0 to n-1, in the order in which each adds them. It calls each
// twice, which has to add the same both times.
func grouped(n int, each func(add func(key, value int32))) groups {
	g := groups{end: make([]int32, n)}
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

// of are the values that belong to a key.
func (g *groups) of(key int) []int32 { return g.values[g.begin(key):g.end[key]] }

// count is how many of returns.
func (g *groups) count(key int) int { return int(g.end[key] - g.begin(key)) }

func (g *groups) begin(key int) int32 {
	if key == 0 {
		return 0
	}
	return g.end[key-1]
}
