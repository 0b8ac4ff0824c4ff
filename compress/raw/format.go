package raw

import (
	"fmt"

	"wpptrace/compress/ops"
)

// The header: a magic number that is not text, and damaged by whoever converts line ends; and a
// version.
const (
	magic   = "\x89RAW\r\n\x1a\n"
	version = 2 // 1: without newPaths
)

// An opcode says what an operation is, and what operands follow.
type opcode byte

// The opcodes. Those of the marks are in the order of ops.Mark, from gap on.
const (
	enterThread   opcode = 0x01 // thread
	enterRoutine  opcode = 0x02 // routine
	leaveRoutine  opcode = 0x03
	newPath       opcode = 0x04 // path
	gap           opcode = 0x05 // n, as of every mark
	handler       opcode = 0x09
	defineThread  opcode = 0x0a // thread, thread id, start, name
	defineRoutine opcode = 0x0b // routine, entry, name
	definePath    opcode = 0x0c // routine, path, kinds
	endTrace      opcode = 0x0d
	newPaths      opcode = 0x0e // path, n
)

// The limits hold for writers as for readers.
const (
	mostNumber = 1<<31 - 1 // of a thread or a routine
	mostName   = 1 << 20   // bytes
	mostOpen   = 1 << 24   // activations, of all threads together
)

// A Thread is a thread of the traced program.
type Thread struct {
	TID int
	// when it began, on any clock: it distinguishes threads and puts them in order; 0: not known
	Start uint64
	Name  string
}

// A Routine is a function of the traced program.
type Routine struct {
	Entry uint64 // address; 0: not known
	Name  string
}

// kinds are where a path starts and ends.
type kinds struct {
	start ops.Start
	end   ops.End
}

// returns reports whether the path closes its activation.
func (k kinds) returns() bool { return k.end == ops.EndReturn || k.end == ops.EndTail }

// mayRepeat reports whether the path may have run so many times, one directly after the other.
func (k kinds) mayRepeat(times uint64) bool {
	return k == kinds{ops.StartLoop, ops.EndLoop} && times > 0 && times <= ops.MostTimes
}

func errTimes(path uint64, routine string, times uint64) error {
	return fmt.Errorf("path %d of %.60q %d times: from 1 to %d are possible, if it runs from a "+
		"back edge's target to a back edge", path, routine, times, uint64(ops.MostTimes))
}

// A pathTable holds the kinds of the paths that have been defined.
type pathTable struct {
	symbols ops.Symbols
	kinds   []kinds // by symbol
}

// define adds a path, unless it is there.
func (t *pathTable) define(routine int, path uint64, k kinds) (isNew bool) {
	if int(t.symbols.Symbol(routine, path)) < len(t.kinds) {
		return false
	}
	t.kinds = append(t.kinds, k)
	return true
}
