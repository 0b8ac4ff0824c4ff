package paths

import "fmt"

// A Start says where a path begins. The values and their order are those of compress/ops.
type Start uint8

// The starts of a path.
const (
	StartEntry  Start = iota // the routine's entry
	StartLoop                // the target of a back edge
	StartCall                // the block after a call
	StartPad                 // an exception landing pad
	StartExtra               // an extra cut, made to keep path numbers small
	StartResume              // within a path: no start of a numbered path
)

func (s Start) String() string {
	names := [...]string{"entry", "loop", "call", "pad", "extra", "resume"}
	if int(s) >= len(names) {
		return fmt.Sprintf("start %d", s)
	}
	return names[s]
}

// An End says where a path ends. The values and their order are those of compress/ops.
type End uint8

// The ends of a path.
const (
	EndLoop     End = iota // a back edge
	EndCall                // a call
	EndReturn              // a return
	EndTail                // a tail jump
	EndNoReturn            // a call that never returns, or a trap
	EndExtra               // an extra cut
	EndCut                 // within a path: no end of a numbered path
)

func (e End) String() string {
	names := [...]string{"loop", "call", "return", "tail", "noreturn", "extra", "cut"}
	if int(e) >= len(names) {
		return fmt.Sprintf("end %d", e)
	}
	return names[e]
}

// A Path is a sequence of blocks, by their indices in the routine, that execution can follow from a
// start to an end without passing another: a block once at most, its last instruction included.
type Path struct {
	Start  Start
	End    End
	Blocks []int
}
