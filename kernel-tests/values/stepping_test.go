//go:build linux && cgo

package valuetests

import (
	"slices"
	"testing"

	"wpptrace/compress/wpp"
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
			snapshot.Files = []string{"x.c"}
			for i := range snapshot.Routines { // each block is a line
				blocks := snapshot.Routines[i].Blocks
				for j := range blocks {
					blocks[j].Line, blocks[j].Last, blocks[j].Spans = j+1, j+1, nil
				}
			}
			x, err := stepping.New(snapshot, 0)
			if err != nil {
				t.Fatal(err)
			}
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
