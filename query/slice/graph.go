package slice

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"slices"

	"wpptrace/compress/wet"
	"wpptrace/compress/wpp"
)

// Kinds are kinds of dependences.
type Kinds uint8

// The kinds.
const (
	Data    Kinds = 1 << iota // by what was in a register, a flag or memory
	Control                   // by a jump that decided, or the call of the routine
)

// A Graph is the dependences of the instructions that a thread has executed. An instance is one of
// these, by number, from 0 on. It takes some 20 bytes an instance, and nothing changes it once it
// is made.
type Graph struct {
	places []Place
	insns  list // of each instance: index in places
	edges  edges
	firsts []int // of each segment of values that it is of: its first instance
	// reads of what others wrote, in order
	foreign []foreign

	// Unsure is how many stores there were of which it is not known where: what they wrote is
	// missing among dependences. Opaque is how many instructions it is not known of what they use.
	Unsure, Opaque int
	// Doubtful is how many reads there were of which the value is not known, though that of the
	// thread's last store there is: they depend on it, unless others wrote since.
	Doubtful int
}

// A foreign read is one of memory that code which is not traced, or another thread, wrote after the
// thread itself had.
type foreign struct {
	instance int
	since    def // that wrote there last, of the thread; 0: it has only read there
}

// A Place is an instruction of the program.
type Place struct {
	Routine, Block, Insn int
	Addr                 uint64 // link-time
}

// An edge leads to the instance that another depends on.
type edge uint32

const controls edge = 1 // by control, not by data

func (e edge) instance() int { return int(e >> 1) }

func (e edge) kind() Kinds {
	if e&controls != 0 {
		return Control
	}
	return Data
}

// most is how many instances a graph has at most.
const most = 1 << 31

// Of returns the graph of a thread, by its index in s.Threads, of a snapshot that has values. It
// takes some 100 ns an instruction that the thread executed.
func Of(s *wpp.Snapshot, thread int) (g *Graph, err error) {
	defer wpp.Recover(&err)
	segments, err := wet.Segments(s, thread)
	if err != nil {
		return nil, err
	}
	return graphOf(s, thread, segments, func(int, *wet.Executed) {}, nil)
}

// graphOf is Of for some segments that tells of each instance. The last one is fault, if there is
// one.
func graphOf(s *wpp.Snapshot, thread int, segments []wet.Segment,
	tell func(int, *wet.Executed), fault *wet.Executed) (g *Graph, err error) {
	defer wpp.Recover(&err)
	code, err := wet.CodeOf(s)
	if err != nil {
		return nil, err
	}
	b := NewBuilder(Flows(s, code))
	for i := 0; i < len(segments) && err == nil; i++ {
		b.graph.firsts = append(b.graph.firsts, b.graph.Len())
		err = segments[i].Replay(0, math.MaxUint64, teller{b, tell})
	}
	if fault != nil && err == nil {
		err = teller{b, tell}.Executed(fault)
	}
	if err != nil {
		return nil, fmt.Errorf("replay thread %d: %w", s.Threads[thread].TID, err)
	}
	return b.Graph(), nil
}

// A teller builds a graph, and tells of each instance before it is there.
type teller struct {
	*Builder
	tell func(int, *wet.Executed)
}

// Executed is for who replays: see wet.Observer.
func (t teller) Executed(e *wet.Executed) error {
	t.tell(t.graph.Len(), e)
	return t.Builder.Executed(e)
}

// Len is how many instances there are.
func (g *Graph) Len() int { return g.insns.n }

// Place is the instruction of an instance.
func (g *Graph) Place(instance int) Place { return g.places[g.insns.at(instance)] }

// DependsOn yields what an instance depends on, and how.
func (g *Graph) DependsOn(instance int) iter.Seq2[int, Kinds] {
	return func(yield func(int, Kinds) bool) {
		for _, e := range g.of(instance) {
			if !yield(e.instance(), e.kind()) {
				return
			}
		}
	}
}

func (g *Graph) of(instance int) []edge { return g.edges.of(instance) }

// Others reports whether an instance reads what code that is not traced wrote, or another thread,
// where the thread had known what was there; and which instance of the thread wrote there last
// before that, -1 if none is known.
func (g *Graph) Others(instance int) (wrote int, is bool) {
	i, is := slices.BinarySearchFunc(g.foreign, instance,
		func(f foreign, instance int) int { return cmp.Compare(f.instance, instance) })
	if !is {
		return -1, false
	}
	return int(g.foreign[i].since) - 1, true
}

// Backward returns all that some instances depend on by some kinds of dependences, directly or not,
// and them, in the order of execution: their backward slice. There is at least one. It takes time
// linear in the instances before the last of them.
func (g *Graph) Backward(by Kinds, of ...int) []int {
	last := slices.Max(of)
	in := make(set, last/64+1)
	count := in.addAll(of)
	for i := last; i >= 0; i-- {
		if !in.has(i) {
			continue
		}
		for _, e := range g.of(i) {
			if on := e.instance(); by&e.kind() != 0 && !in.has(on) {
				in.add(on)
				count++
			}
		}
	}
	return in.list(0, count)
}

// Forward returns all that depends on some instances, as Backward does what they depend on.
func (g *Graph) Forward(by Kinds, of ...int) []int {
	first := slices.Min(of)
	in := make(set, g.Len()/64+1)
	count := in.addAll(of)
	for i := first + 1; i < g.Len(); i++ {
		if in.has(i) {
			continue
		}
		for _, e := range g.of(i) {
			if on := e.instance(); on >= first && by&e.kind() != 0 && in.has(on) {
				in.add(i)
				count++
				break
			}
		}
	}
	return in.list(first/64, count)
}

// A set is a set of instances.
type set []uint64

func (s set) add(i int)      { s[i>>6] |= 1 << (i & 63) }
func (s set) has(i int) bool { return s[i>>6]>>(i&63)&1 == 1 }

// addAll adds instances, and returns how many it has then, where it had none.
func (s set) addAll(list []int) (count int) {
	for _, i := range list {
		if !s.has(i) {
			s.add(i)
			count++
		}
	}
	return count
}

// list returns the instances from a word of the set on.
func (s set) list(from, count int) []int {
	list := make([]int, 0, count)
	for i := from * 64; i < len(s)*64; i++ {
		if s.has(i) {
			list = append(list, i)
		}
	}
	return list
}

// A Builder makes a graph of what it observes: the instructions of one thread, in their order.
type Builder struct {
	graph  Graph
	blocks map[[2]int]*[]uint32 // of each routine and block, by instruction: index in places
	block  *[]uint32            // the last one
	at     [2]int               // of that
	frames *frames

	general [32]def
	values  [32]wet.Register // what general registers were written with last
	vectors [32]def
	flags   [8]def
	memory  memory

	beforeCall def           // the stack pointer before the last instance
	found      []edge        // of the instance at hand
	many       map[edge]bool // those of found behind the first few
}

// A def is the instance that made a value, and 1; 0: none is known.
type def uint32

// NewBuilder returns a builder. flows is where control may go in a routine, nil if it is not known:
// it is asked for each routine once.
func NewBuilder(flows func(routine int) Flow) *Builder {
	return &Builder{blocks: map[[2]int]*[]uint32{}, frames: newFrames(flows),
		many: map[edge]bool{}}
}

// Graph returns the graph of what was observed. It ends the builder.
func (b *Builder) Graph() *Graph { return &b.graph }

// Executed is for who replays: see wet.Observer. It fails where there are too many.
func (b *Builder) Executed(e *wet.Executed) error {
	g := &b.graph
	i := g.Len()
	if i >= most || g.edges.isFull() {
		return fmt.Errorf("thread %d executed more instructions than the %d that a slice may have",
			e.TID, i)
	}
	if e.External {
		b.external(e)
	}
	b.found = b.found[:0]
	if len(b.many) > 0 {
		b.many = map[edge]bool{}
	}
	b.control(e, i)
	b.uses(e)
	g.insns.append(b.place(e))
	g.edges.add(b.found)
	b.defines(e, def(i+1))
	return nil
}

func (b *Builder) place(e *wet.Executed) uint32 {
	if at := [2]int{e.Routine, e.Block}; b.block == nil || at != b.at {
		b.at = at
		if b.block = b.blocks[at]; b.block == nil {
			b.block = &[]uint32{}
			b.blocks[at] = b.block
		}
	}
	for e.Insn >= len(*b.block) {
		*b.block = append(*b.block, none)
	}
	n := &(*b.block)[e.Insn]
	if *n == none {
		*n = uint32(len(b.graph.places))
		b.graph.places = append(b.graph.places, Place{e.Routine, e.Block, e.Insn, e.Addr})
	}
	return *n
}

const none = 1<<32 - 1
