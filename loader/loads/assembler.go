package loads

import (
	"encoding/binary"

	"wpptrace/loader/x86"
)

// A knot is a step and all that a program does behind it. Numbers are those of knots, 0: the end.
type knot struct {
	step  Step // without Jump
	next  int32
	other int32 // of a Branch: where its condition holds; of a Switch: the list it chooses from
}

// knots are those of some programs; equal ones are one, so that programs share their ends.
type knots struct {
	list   []knot // the first is the end
	number map[knot]int32
	cases  [][]int32 // the lists that Switch steps choose from
	lists  map[string]int32
	ids    []int32 // by step of the program that is being added
	key    []byte
}

func newKnots() *knots {
	return &knots{list: make([]knot, 1), number: map[knot]int32{}, lists: map[string]int32{}}
}

func (x *knots) of(k knot) int32 {
	id, ok := x.number[k]
	if !ok {
		id = int32(len(x.list))
		x.list = append(x.list, k)
		x.number[k] = id
	}
	return id
}

func (x *knots) listOf(cases []int32) int32 {
	x.key = x.key[:0]
	for _, id := range cases {
		x.key = binary.LittleEndian.AppendUint32(x.key, uint32(id))
	}
	n, ok := x.lists[string(x.key)]
	if !ok {
		n = int32(len(x.cases))
		x.cases = append(x.cases, cases)
		x.lists[string(x.key)] = n
	}
	return n
}

// program adds a program, in which a Branch alone jumps, and jumps forward, and a Switch has the
// index of its cases; it returns its first knot.
func (x *knots) program(steps []Step, cases []uint32) int32 {
	x.ids = append(x.ids[:0], make([]int32, len(steps)+1)...)
	for i := len(steps) - 1; i >= 0; i-- {
		k := knot{step: steps[i], next: x.ids[i+1]}
		k.step.Jump = 0
		switch s := &steps[i]; {
		case s.Op == End:
			continue
		case s.Op == Return:
			k.next = 0
		case s.isJump():
			x.ids[i] = x.ids[i+1+int(s.Jump)]
			continue
		case s.Op == Branch:
			k.other = x.ids[i+1+int(s.Jump)]
		case s.Op == Switch:
			list := make([]int32, cases[s.Jump])
			for n := range list {
				list[n] = x.ids[cases[int(s.Jump)+1+n]]
			}
			k.other = x.listOf(list)
		}
		x.ids[i] = x.of(k)
	}
	return x.ids[0]
}

// isJump reports whether a branch is always taken.
func (s *Step) isJump() bool {
	return s.Op == Branch && s.A == NoCell && s.B == NoCell && s.Imm == 0 && s.Sign == 0 &&
		s.Condition == x86.Equal
}

// merge adds the knots of other programs, and returns the numbers that theirs have here.
func (x *knots) merge(part *knots) (moved []int32) {
	moved = make([]int32, len(part.list))
	for i, k := range part.list {
		if i == 0 {
			continue
		}
		switch k.next = moved[k.next]; k.step.Op {
		case Branch:
			k.other = moved[k.other]
		case Switch:
			list := make([]int32, len(part.cases[k.other]))
			for n, id := range part.cases[k.other] {
				list[n] = moved[id]
			}
			k.other = x.listOf(list)
		}
		moved[i] = x.of(k)
	}
	return moved
}

// An assembler lays the steps of programs one behind the other.
type assembler struct {
	knots *knots
	steps []Step
	cases []uint32
	goals []int32  // by step, the knot that its Jump leads to
	to    []int32  // by case, the same; -1: it is how many there are
	at    []uint32 // by knot, its step; 0: it has none yet
	left  []int32  // knots that need one
}

// nothingBehind is the step of a program that is known to read nothing.
const nothingBehind = 1

func newAssembler(x *knots) *assembler {
	return &assembler{knots: x, steps: []Step{{Op: End}, {Op: End}}, goals: make([]int32, 2),
		at: make([]uint32, len(x.list))}
}

// program returns the first step of a program, 0 if it has none.
func (a *assembler) program(first int32) uint32 {
	a.left = append(a.left, first)
	for len(a.left) > 0 {
		id := a.left[len(a.left)-1]
		a.left = a.left[:len(a.left)-1]
		a.chain(id)
	}
	return a.at[first]
}

func (a *assembler) hasPlace(id int32) bool { return id == 0 || a.at[id] != 0 }

// chain lays a knot, if it has no step yet, and those behind it as far as they have none.
func (a *assembler) chain(id int32) {
	for !a.hasPlace(id) {
		a.at[id] = uint32(len(a.steps))
		k := a.knots.list[id]
		switch id = k.next; k.step.Op {
		case Branch:
			if a.hasPlace(k.next) && !a.hasPlace(k.other) {
				k.step.Condition ^= 1
				id, k.other = k.other, k.next
			}
			a.left = append(a.left, k.other)
			a.lay(k.step, k.other)
			a.closes(id)
		case Switch:
			list := a.knots.cases[k.other]
			k.step.Jump = uint32(len(a.cases))
			a.lay(k.step, -1)
			a.cases, a.to = append(a.cases, uint32(len(list))), append(a.to, -1)
			a.cases, a.to = append(a.cases, make([]uint32, len(list))...), append(a.to, list...)
			a.left = append(a.left, list...)
			a.closes(id)
		case Return:
			a.lay(k.step, -1)
			return
		default:
			a.lay(k.step, k.next)
		}
	}
}

// lay adds a step; goal is the knot that it goes on at, or jumps to, -1: none.
func (a *assembler) lay(s Step, goal int32) {
	a.steps, a.goals = append(a.steps, s), append(a.goals, goal)
}

// closes lays, behind a step that may go on there, what leads to a knot that has its place
// elsewhere: a copy of its step, which takes no time.
func (a *assembler) closes(id int32) {
	if !a.hasPlace(id) {
		return
	}
	switch k := &a.knots.list[id]; {
	case id == 0:
		a.lay(Step{Op: End}, -1)
	case k.step.Op == Branch || k.step.Op == Switch:
		a.lay(Step{Op: Branch, A: NoCell, B: NoCell, Size: 8, Condition: x86.Equal}, id)
	case k.step.Op == Return:
		a.lay(k.step, -1)
	default:
		a.lay(k.step, k.next)
	}
}

// finish has all steps and cases lead to where knots have their places.
func (a *assembler) finish() ([]Step, []uint32) {
	for i, id := range a.goals {
		if s := &a.steps[i]; id >= 0 && s.Op != End {
			s.Jump = a.at[id] - uint32(i) - 1
		}
	}
	for i, id := range a.to {
		if id >= 0 {
			a.cases[i] = max(a.at[id], nothingBehind)
		}
	}
	return a.steps, a.cases
}
