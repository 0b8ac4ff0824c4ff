package counting

import (
	"errors"
	"fmt"
	"slices"

	"wpptrace/loader/cfg"
	"wpptrace/loader/paths"
)

// errTooLarge says that a machine has too many states to be proven.
var errTooLarge = errors.New("it has too many states")

// mostPlaces is how many places a proof looks at.
const mostPlaces = 200_000

// check proves that a machine counts the interesting paths of a routine, and all others together,
// if it counts these: whatever a thread does in the routine, and whatever its state is of when it
// comes there. It knows of the machine what is in the kernel and what its counters mean, and
// nothing of how it came about. It returns the index of a path that is not counted right, restPath
// for the others together, and an error; nil if all is right. steps returns the steps of a row.
func (g *graph) check(m *Machine, steps func(row int) []Step, list []paths.Path,
	twice func(block int) bool, work *int) (wrong int, err error) {
	c := &checker{graph: g, m: m, steps: steps, list: list, twice: twice, seen: map[uint64]bool{},
		effects: make([][]effect, m.Keys), sums: map[sum]int{}, known: [][]effect{nil},
		begun: map[start]int{}, left: map[int]bool{lost: true}, site: make([]bool, len(g.moves))}
	for _, b := range m.Sites {
		c.site[b] = true
	}
	c.note()
	c.plant()
	c.enter(lost)
	for len(c.pending) > 0 && c.err == nil {
		at := c.pending[len(c.pending)-1]
		c.pending = c.pending[:len(c.pending)-1]
		c.run(at)
	}
	*work += len(c.seen)
	return c.wrong, c.err
}

// A place is where a thread is, what its path is, and what the kernel thinks.
type place struct {
	block int
	truth int // an index of trie; other: no interesting path begins so
	row   int
	sum   int // an index of known: what the path's hits have counted
}

const other = -1

// An effect is that of a counter on what is said to be a path's number.
type effect struct{ path, by int }

type checker struct {
	*graph
	m     *Machine
	steps func(row int) []Step
	list  []paths.Path
	twice func(block int) bool

	site    []bool     // by block
	trie    []truth    // beginnings of interesting paths
	effects [][]effect // by key
	known   [][]effect // sums, of which the first is nothing
	sums    map[sum]int

	begun map[start]int // indices of trie

	seen    map[uint64]bool
	pending []place
	left    map[int]bool // rows that an activation may have been left with
	again   []start      // where calls may return to that another activation of the thread has made

	wrong int
	err   error
}

type sum struct{ before, key int }

// A truth is the beginning of an interesting path.
type truth struct {
	next map[int]int       // by block
	ends map[paths.End]int // interesting paths
}

// restPath is in place of a path's index: all other paths together.
const restPath = -1

// note finds what each counter has an effect on.
func (c *checker) note() {
	add := func(path int, f *Formula) {
		for _, k := range f.Plus {
			c.effects[k] = append(c.effects[k], effect{path, 1})
		}
		for _, k := range f.Minus {
			c.effects[k] = append(c.effects[k], effect{path, -1})
		}
	}
	for i := range c.m.Paths {
		add(i, &c.m.Paths[i])
	}
	if c.m.Rest != nil {
		add(restPath, c.m.Rest)
	}
}

// plant makes the trie of the interesting paths.
func (c *checker) plant() {
	node := func() int {
		c.trie = append(c.trie, truth{map[int]int{}, map[paths.End]int{}})
		return len(c.trie) - 1
	}
	for i, p := range c.list {
		s := start{p.Blocks[0], p.Start}
		at := c.begin(s)
		if at == other {
			at = node()
			c.begun[s] = at
		}
		for _, b := range p.Blocks[1:] {
			next, ok := c.trie[at].next[b]
			if !ok {
				next = node()
				c.trie[at].next[b] = next
			}
			at = next
		}
		c.trie[at].ends[p.End] = i
	}
}

// begin returns the truth of a path that has just begun.
func (c *checker) begin(s start) int {
	if at, ok := c.begun[s]; ok {
		return at
	}
	return other
}

func (c *checker) push(at place) {
	if at.block >= 1<<18 || at.truth >= 1<<16-1 || at.row >= 1<<18-1 || at.sum >= 1<<12 ||
		len(c.seen) >= mostPlaces {
		c.err = errTooLarge
		return
	}
	packed := uint64(at.block)<<46 | uint64(at.truth+1)<<30 | uint64(at.row+1)<<12 | uint64(at.sum)
	if c.seen[packed] {
		return
	}
	c.seen[packed] = true
	c.pending = append(c.pending, at)
}

func (c *checker) pushStart(s start, row int) {
	c.push(place{s.block, c.begin(s), row, 0})
}

// enter enters the routine with a row, which may be of an activation before that was in the same
// place.
func (c *checker) enter(row int) {
	for _, s := range slices.Concat(c.entries, c.pads, c.again) {
		c.pushStart(s, row)
	}
}

// leave notes that an activation may end, or be left, with a row.
func (c *checker) leave(row int) {
	if !c.left[row] {
		c.left[row] = true
		c.enter(row)
	}
}

// run runs a block.
func (c *checker) run(at place) {
	if !c.site[at.block] {
		for i := range c.moves[at.block] {
			c.move(at, &c.moves[at.block][i])
		}
		return
	}
	for out := range c.outcomes(at.block) {
		after := at
		step := c.hit(at.row, symbolOf(at.block, out))
		after.row = step.Row
		if step.Key != None {
			after.sum = c.plus(at.sum, step.Key)
		}
		for _, m := range c.follow(at.block, out) {
			c.move(after, &m)
		}
	}
}

// hit is what the kernel does.
func (c *checker) hit(row int, s Symbol) Step {
	if row != lost {
		if step, ok := find(c.steps(row), s); ok {
			return step
		}
	}
	if step, ok := find(c.m.Defaults, s); ok {
		return step
	}
	return Step{s, lost, None}
}

func (c *checker) move(at place, m *move) {
	if !m.ends {
		at.block = m.to
		if at.truth != other {
			next, ok := c.trie[at.truth].next[m.to]
			if !ok {
				next = other
			}
			at.truth = next
		}
		c.push(at)
		return
	}
	c.end(&at, m.end)
	if !m.hard {
		c.pushStart(m.follows(), at.row)
		return
	}
	c.leave(at.row)
	if m.to == cfg.Exit {
		return
	}
	back := m.follows()
	c.pushStart(back, at.row)
	c.pushStart(back, lost)
	if c.twice(at.block) && !slices.Contains(c.again, back) {
		c.again = append(c.again, back)
		for row := range c.left {
			c.pushStart(back, row)
		}
	}
}

// end compares what the hits of a path have counted with what it is.
func (c *checker) end(at *place, end paths.End) {
	path := restPath
	if at.truth != other {
		if i, ok := c.trie[at.truth].ends[end]; ok {
			path = i
		}
	}
	right := false
	for _, e := range c.known[at.sum] {
		switch {
		case e.by == 0:
		case e.path == path && e.by == 1:
			right = true
		default:
			c.fault(e.path, at.block)
		}
	}
	if !right && (path != restPath || c.m.Rest != nil) {
		c.fault(path, at.block)
	}
}

func (c *checker) fault(path, block int) {
	if c.err == nil {
		c.wrong = path
		c.err = fmt.Errorf("path %d is not counted right: see block %d", path, block)
	}
}

// plus adds the effects of a counter to a sum.
func (c *checker) plus(before, key int) int {
	at, ok := c.sums[sum{before, key}]
	if ok {
		return at
	}
	list := slices.Clone(c.known[before])
	for _, e := range c.effects[key] {
		if i := slices.IndexFunc(list, func(o effect) bool { return o.path == e.path }); i >= 0 {
			list[i].by += e.by
		} else {
			list = append(list, e)
		}
	}
	list = slices.DeleteFunc(list, func(e effect) bool { return e.by == 0 })
	slices.SortFunc(list, func(a, b effect) int { return a.path - b.path })
	at = slices.IndexFunc(c.known, func(o []effect) bool { return slices.Equal(o, list) })
	if at < 0 {
		at = len(c.known)
		c.known = append(c.known, list)
	}
	c.sums[sum{before, key}] = at
	return at
}
