package tiers

import (
	"cmp"
	"encoding/binary"
	"maps"
	"slices"

	"wpptrace/compress/wet"
	"wpptrace/compress/wet/machine"
)

// A valuer collects the timestamps and values of paths.
type valuer struct {
	nodes  map[uint32]*node // by symbol
	now    *node
	at     int      // how many statements of it have been executed
	values []uint64 // of those that have one
	count  uint64   // of values
}

// A node is an acyclic path.
type node struct {
	stamps     []uint64
	executions [][]uint64 // the values of each: of one that was cut short there are fewer
	// of the longest execution so far
	read   int    // statements
	inputs inputs // behind them
	sets   []set  // by statement that has a value: inputs it follows from
}

// A group is the statements of a path whose values follow from the same inputs: section 3.2.
type group struct {
	statements []int             // by number among those that have a value
	known      map[string]uint64 // the values that they had together, numbered
	different  [][]uint64        // by statement
	pattern    []uint64          // by execution, the number
}

// begin begins an execution of a path.
func (v *valuer) begin(symbol uint32, stamp uint64) {
	v.flush()
	n := v.nodes[symbol]
	if n == nil {
		n = &node{inputs: newInputs()}
		v.nodes[symbol] = n
	}
	n.stamps = append(n.stamps, stamp)
	v.now, v.at, v.values = n, 0, nil
}

// add adds a statement of it.
func (v *valuer) add(e *wet.Executed) {
	if n := v.now; v.at == n.read { // the first execution that comes so far
		n.read++
		if from := n.inputs.of(e); len(e.Written) > 0 {
			n.sets = append(n.sets, from)
		}
	}
	v.at++
	if len(e.Written) > 0 {
		v.values = append(v.values, e.Written[0].Value)
	}
}

// flush ends an execution.
func (v *valuer) flush() {
	if n := v.now; n != nil {
		v.count += uint64(len(v.values))
		n.executions = append(n.executions, v.values)
	}
}

// groups makes the groups of a path, with the values of all of its executions.
func (n *node) groups() []*group {
	groups := groupsOf(n.sets)
	for _, g := range groups {
		for _, values := range n.executions {
			g.add(values)
		}
	}
	return groups
}

// add adds the values of an execution. A path that was cut short by a signal has fewer.
func (g *group) add(values []uint64) {
	var key []byte
	for _, i := range g.statements {
		if i < len(values) {
			key = binary.LittleEndian.AppendUint64(key, values[i])
		}
	}
	n, ok := g.known[string(key)]
	if !ok {
		n = uint64(len(g.known))
		g.known[string(key)] = n
		for k, i := range g.statements {
			if i < len(values) {
				g.different[k] = append(g.different[k], values[i])
			}
		}
	}
	g.pattern = append(g.pattern, n)
}

// stored is how a group is kept, and how many bytes that takes: its pattern, if there is something
// to tell apart, in as few bytes a number as there need be, and the different values; or all
// values, where that is less.
func (g *group) stored() (bytes uint64, lists [][]uint64) {
	executions, each := uint64(len(g.pattern)), uint64(wordSize)
	switch n := len(g.known); {
	case n == 1:
		each = 0
	case n <= 1<<8:
		each = 1
	case n <= 1<<16:
		each = 2
	}
	bytes = each*executions + wordSize*uint64(len(g.known)*len(g.statements))
	all := wordSize * executions * uint64(len(g.statements))
	switch {
	case bytes < all && each == 0:
		return bytes, g.different
	case bytes < all:
		return bytes, append([][]uint64{g.pattern}, g.different...)
	}
	for _, different := range g.different {
		list := make([]uint64, 0, len(g.pattern))
		for _, n := range g.pattern {
			if n < uint64(len(different)) {
				list = append(list, different[n])
			}
		}
		lists = append(lists, list)
	}
	return all, lists
}

// groupsOf makes groups of statements: one whose inputs are among those of another is in the
// group of that.
func groupsOf(sets []set) (groups []*group) {
	order := make([]int, len(sets))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return sets[b].len() - sets[a].len() })
	var of []set
	for _, i := range order {
		at := slices.IndexFunc(of, sets[i].isIn)
		if at < 0 {
			at = len(of)
			of = append(of, sets[i])
			groups = append(groups, &group{known: map[string]uint64{}})
		}
		groups[at].statements = append(groups[at].statements, i)
	}
	for _, g := range groups {
		g.different = make([][]uint64, len(g.statements))
	}
	return groups
}

// measure says how large timestamps and values are.
func (v *valuer) measure(t *Tiers) error {
	t.Timestamps.Before, t.Values.Before = wordSize*t.Instructions, wordSize*v.count
	var stamps, values [][]uint64
	for _, symbol := range slices.Sorted(maps.Keys(v.nodes)) {
		n := v.nodes[symbol]
		stamps = append(stamps, n.stamps)
		t.Timestamps.First += wordSize * uint64(len(n.stamps))
		for _, g := range n.groups() {
			bytes, lists := g.stored()
			t.Values.First += bytes
			values = append(values, lists...)
		}
	}
	return cmp.Or(t.Timestamps.second(stamps), t.Values.second(values))
}

// A set is inputs: bits.
type set []uint64

func (s set) add(n int) set {
	for len(s) <= n/64 {
		s = append(s, 0)
	}
	s[n/64] |= 1 << (n % 64)
	return s
}

func (s set) with(other set) set {
	for len(s) < len(other) {
		s = append(s, 0)
	}
	for i, word := range other {
		s[i] |= word
	}
	return s
}

func (s set) len() (n int) {
	for _, word := range s {
		for ; word != 0; word &= word - 1 {
			n++
		}
	}
	return n
}

func (s set) isIn(other set) bool {
	for i, word := range s {
		if i >= len(other) && word != 0 || i < len(other) && word&^other[i] != 0 {
			return false
		}
	}
	return true
}

// inputs are what registers follow from amid a path: of what was there at its beginning, and of
// what was loaded since.
type inputs struct {
	registers [17]set // the general ones, and flags
	next      int     // number of the next input
}

const flags = 16

func newInputs() (x inputs) {
	for i := range x.registers {
		x.registers[i] = set{}.add(i)
	}
	x.next = len(x.registers)
	return x
}

// of returns what an instruction's results follow from, and takes them in. A load is an input of
// its own: where from it was loaded says nothing of it.
func (x *inputs) of(e *wet.Executed) set {
	var from set
	loads := false
	for i := range e.Accesses {
		if !e.Accesses[i].Write {
			from, loads = from.add(x.next), true
			x.next++
		}
	}
	used := e.Code.Uses().General
	for r := range 16 {
		if used>>r&1 != 0 && !(loads && isAddress(e.Code, uint8(r))) {
			from = from.with(x.registers[r])
		}
	}
	if e.FlagsUsed != 0 {
		from = from.with(x.registers[flags])
	}
	for _, w := range e.Written {
		x.registers[w.Number&15] = from
	}
	if e.FlagsWritten != 0 {
		x.registers[flags] = from
	}
	return from
}

// isAddress reports whether an instruction uses a register for an address, and for nothing else.
func isAddress(in *machine.Insn, register uint8) bool {
	is := false
	for _, o := range []*machine.Operand{&in.Dst, &in.Src, &in.Third} {
		switch {
		case o.Class == machine.Mem:
			is = is || o.Reg == register || o.Index == register
		case o.Class == machine.General && o.Reg == register:
			return false
		}
	}
	return is
}
