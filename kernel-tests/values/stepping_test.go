//go:build linux && cgo

package valuetests

import (
	"slices"
	"testing"

	"wpptrace/compress/wpp"
	"wpptrace/kernel-tests/truth"
	"wpptrace/kernel-tests/truth/states"
	"wpptrace/query/stepping"
	"wpptrace/query/values"
)

// TestStepping: of recorded runs, steps back stop where steps forward did, in the reverse order.
func TestStepping(t *testing.T) {
	for _, name := range states.Names() {
		t.Run(name, func(t *testing.T) {
			s, err := states.Load(name)
			if err != nil {
				t.Fatal(err)
			}
			snapshot, _ := record(t, s)
			x := begin(t, snapshot)
			compareInstructions(t, snapshot, x)
			forward := stops(t, x, stepping.Forward, x.Into)
			back := stops(t, x, stepping.Back, x.Into)
			slices.Reverse(back)
			if len(back) == len(forward)+1 { // forward ends at the last instruction
				back = back[:len(forward)]
			}
			if len(forward) < 100 || !slices.Equal(forward, back) {
				t.Errorf("%d stops forward, %d back", len(forward), len(back))
			}
			lines(t, x)
		})
	}
}

// begin stands at the start of a snapshot whose blocks are a line each.
func begin(t *testing.T, s *wpp.Snapshot) *stepping.State {
	t.Helper()
	s.Files = []string{"x.c"}
	for i := range s.Routines {
		blocks := s.Routines[i].Blocks
		for j := range blocks {
			blocks[j].Line, blocks[j].Last, blocks[j].Spans = j+1, j+1, nil
		}
	}
	x, err := stepping.New(s, 0)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// TestSteppingAcrossSegments: each move stops in a run of many segments where it stops in the same
// run of one, in the same calls; and a run to a routine stops where the routine was entered.
func TestSteppingAcrossSegments(t *testing.T) {
	for _, name := range states.Names() {
		t.Run(name, func(t *testing.T) {
			sample, err := states.Load(name)
			if err != nil {
				t.Fatal(err)
			}
			whole, _ := record(t, sample)
			cut, _ := recordIn(t, sample, 100)
			one, many := begin(t, whole), begin(t, cut)
			ofOne, entered := instructions(t, whole, one)
			ofMany, _ := instructions(t, cut, many)
			if len(ofOne) != len(ofMany) || many.Position().Segment < 5 {
				t.Fatalf("%d instructions, and %d in %d segments", len(ofOne), len(ofMany),
					many.Position().Segment+1)
			}
			for what, move := range map[string]func(*stepping.State, stepping.Way) (stepping.End,
				error){"into": (*stepping.State).Into, "line": (*stepping.State).Line,
				"out": (*stepping.State).Out} {
				for _, way := range []stepping.Way{stepping.Back, stepping.Forward} {
					want := moves(t, one, ofOne, way, move)
					if got := moves(t, many, ofMany, way, move); !slices.Equal(got, want) {
						t.Errorf("%s, back %v: %v, want %v", what, way, got, want)
					}
				}
			}
			compared := 0
			for r, want := range entered {
				stop, err := stepping.StopAt(cut, cut.Routines[r].Name)
				if err != nil {
					continue // of several routines that have the name
				}
				many.Stops = []stepping.Stop{stop}
				moves(t, many, ofMany, stepping.Back, (*stepping.State).Instruction)
				forward := stopsOf(t, many, ofMany)
				if want[0] == 0 { // where it began
					want = want[1:]
				}
				if !slices.Equal(forward, want) {
					t.Errorf("%s is entered at %v, want %v", stop.Text, forward, want)
				}
				compared++
			}
			if compared == 0 {
				t.Error("no run to a routine was compared")
			}
			watches(t, sample, many)
			positions(t, cut, many, ofMany)
			pauses(t, many, ofMany)
		})
	}
}

// watches fails the test unless runs, both ways, come to the instructions that wrote, by the truth,
// what was written most often, but for those of which it is not known where they write.
func watches(t *testing.T, sample *states.Sample, x *stepping.State) {
	t.Helper()
	times, most := map[uint64]int{}, uint64(0)
	steps := sample.Trace.Threads[0].Values
	for i := range steps {
		for _, w := range steps[i].Writes {
			if times[w.Addr]++; times[w.Addr] > times[most] {
				most = w.Addr
			}
		}
	}
	var want []uint64
	for i := range steps {
		if slices.ContainsFunc(steps[i].Writes, func(w truth.MemoryValue) bool {
			return w.Addr <= most && most-w.Addr < uint64(len(w.Bytes))
		}) {
			want = append(want, steps[i].PC)
		}
	}
	x.Stops = nil
	x.SetWatches([]stepping.Watch{{Addr: most, Size: 1}})
	for _, way := range []stepping.Way{stepping.Back, stepping.Forward} {
		for {
			end, err := x.Instruction(way)
			if err != nil {
				t.Fatal(err)
			}
			if end == stepping.Start || end == stepping.Last {
				break
			}
		}
		var got []uint64
		unsure := 0
		back := !way
		for {
			end, err := x.Run(back)
			if err != nil {
				t.Fatal(err)
			}
			unsure += x.Unsure()
			if end != stepping.Written {
				break
			}
			here, err := x.WritesHere()
			if err != nil || len(here) != 1 {
				t.Fatalf("%v, %v", here, err)
			}
			p, err := x.Place()
			if err != nil {
				t.Fatal(err)
			}
			if !here[0].Found {
				got = append(got, p.Addr)
			}
		}
		if back {
			slices.Reverse(got)
		}
		if len(got) < 3 || len(got) > len(want) || len(got)+unsure < len(want)-1 ||
			unsure == 0 && !slices.Equal(got, want[len(want)-len(got):]) {
			t.Errorf("%x is written %d times, back %v, want %d; %d unsure", most, len(got), back,
				len(want), unsure)
		}
	}
}

// positions fails the test unless each position of the stream is found where it ran first.
func positions(t *testing.T, s *wpp.Snapshot, x *stepping.State,
	numbers map[stepping.Position]int) {
	t.Helper()
	x.SetWatches(nil)
	at, n := ^uint64(0), 0
	for e, err := range values.Instructions(s, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if isFirst := e.Symbol != at; isFirst && e.Symbol%20 == 0 {
			if err := x.Goto(e.Symbol); err != nil || numbers[x.Position()] != n {
				t.Errorf("position %d is at instruction %d, want %d: %v", e.Symbol,
					numbers[x.Position()], n, err)
			}
		}
		at = e.Symbol
		n++
	}
}

// pauses fails the test unless a run that is paused again and again comes to the end.
func pauses(t *testing.T, x *stepping.State, numbers map[stepping.Position]int) {
	t.Helper()
	if err := x.Goto(0); err != nil {
		t.Fatal(err)
	}
	x.Stops, x.Pause = nil, func() bool { return true }
	paused := 0
	for _, m := range moves(t, x, numbers, stepping.Forward, (*stepping.State).Into) {
		if m.end == stepping.Paused {
			paused++
		}
	}
	if paused < 3 || numbers[x.Position()] != len(numbers)-1 {
		t.Errorf("%d pauses, and instruction %d of %d", paused, numbers[x.Position()],
			len(numbers))
	}
}

// instructions goes to the last instruction, and returns the number of each position, and of those
// at which routines are entered.
func instructions(t *testing.T, s *wpp.Snapshot, x *stepping.State) (
	numbers map[stepping.Position]int, entered map[int][]int) {
	t.Helper()
	numbers, entered = map[stepping.Position]int{}, map[int][]int{}
	for e, err := range values.Instructions(s, 0) {
		if err != nil {
			t.Fatal(err)
		}
		n := len(numbers)
		numbers[x.Position()] = n
		if s.Routines[e.Routine].Entry == e.Addr {
			entered[e.Routine] = append(entered[e.Routine], n)
		}
		if p, err := x.Place(); err != nil || p.Addr != e.Addr {
			t.Fatalf("instruction %d is at %x, want %x: %v", n, p.Addr, e.Addr, err)
		}
		if _, err := x.Instruction(stepping.Forward); err != nil {
			t.Fatal(err)
		}
	}
	return numbers, entered
}

// compareInstructions fails the test unless the instructions, forwards and backwards, are those
// that were executed.
func compareInstructions(t *testing.T, s *wpp.Snapshot, x *stepping.State) {
	t.Helper()
	i := 0
	for e, err := range values.Instructions(s, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if p, err := x.Place(); err != nil || p.Addr != e.Addr || x.Position().Insn != i {
			t.Fatalf("instruction %d is at %x, want %x: %v", i, p.Addr, e.Addr, err)
		}
		if _, err := x.Instruction(stepping.Forward); err != nil {
			t.Fatal(err)
		}
		i++
	}
	if n := len(stops(t, x, stepping.Back, x.Instruction)); n != i {
		t.Errorf("%d instructions back, %d forward", n, i)
	}
}

// lines fails the test unless a line back undoes a line forward, from wherever a line begins: but
// for lines that were amid a call.
func lines(t *testing.T, x *stepping.State) {
	t.Helper()
	depth := func() int {
		frames, err := x.Frames()
		if err != nil {
			t.Fatal(err)
		}
		return len(frames)
	}
	move := func(move func(stepping.Way) (stepping.End, error), way stepping.Way) stepping.End {
		end, err := move(way)
		if err != nil {
			t.Fatal(err)
		}
		return end
	}
	same := 0
	for move(x.Into, stepping.Forward) == stepping.Arrived {
		from, at := x.Position(), depth()
		if move(x.Line, stepping.Forward) == stepping.Arrived {
			to, deep := x.Position(), depth()
			move(x.Line, stepping.Back)
			if deep > at || x.Position().Insn > from.Insn {
				t.Fatalf("from %v at depth %d to %v at %d, and back to %v", from, at, to, deep,
					x.Position())
			}
			if deep == at {
				same++
				if move(x.Line, stepping.Forward); x.Position() != to {
					t.Fatalf("from %v to %v, back, and to %v", from, to, x.Position())
				}
			}
		}
		for x.Position().Insn > from.Insn {
			move(x.Instruction, stepping.Back)
		}
		for x.Position().Insn < from.Insn {
			move(x.Instruction, stepping.Forward)
		}
	}
	if same < 20 {
		t.Errorf("only %d lines led to one of the same routine", same)
	}
}

// stops are where moves stop, from where they begin on.
func stops(t *testing.T, x *stepping.State, way stepping.Way,
	move func(stepping.Way) (stepping.End, error)) []stepping.Position {
	t.Helper()
	list := []stepping.Position{x.Position()}
	for {
		end, err := move(way)
		if err != nil {
			t.Fatal(err)
		}
		if end != stepping.Arrived {
			return list
		}
		list = append(list, x.Position())
	}
}

// A moved is where a move has ended.
type moved struct {
	instruction, depth int
	end                stepping.End
}

// moves are where moves end, until they go no further.
func moves(t *testing.T, x *stepping.State, numbers map[stepping.Position]int, way stepping.Way,
	move func(*stepping.State, stepping.Way) (stepping.End, error)) (list []moved) {
	t.Helper()
	for {
		end, err := move(x, way)
		if err != nil {
			t.Fatal(err)
		}
		frames, err := x.Frames()
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, moved{numbers[x.Position()], len(frames), end})
		if end == stepping.Start || end == stepping.Last {
			return list
		}
	}
}

// stopsOf are the instructions that runs to stops come to, both ways, from the start on.
func stopsOf(t *testing.T, x *stepping.State, numbers map[stepping.Position]int) []int {
	t.Helper()
	var both [2][]int
	for i, way := range []stepping.Way{stepping.Forward, stepping.Back} {
		for _, m := range moves(t, x, numbers, way, (*stepping.State).Run) {
			if m.end == stepping.Reached {
				both[i] = append(both[i], m.instruction)
			}
		}
	}
	slices.Reverse(both[1])
	forward, back := both[0], both[1]
	if n := len(numbers) - 1; len(forward) > 0 && forward[len(forward)-1] == n {
		forward = forward[:len(forward)-1] // back begins there
	}
	if len(back) > 0 && back[0] == 0 {
		back = back[1:] // forward began there
	}
	if !slices.Equal(forward, back) {
		t.Errorf("to %s: forward %v, back %v", x.Stops[0].Text, forward, back)
	}
	return both[0]
}
