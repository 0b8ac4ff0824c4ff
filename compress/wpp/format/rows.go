package format

import "fmt"

// Rows count what the rows take in memory that are made of the columns of a file: a row of zeros is
// a few bytes there, and next to nothing when they are compressed. They are counted when they are
// written, too, so that what is written can be read.
type rows struct{ ofProgram, ofSymbols int64 }

// What rows take.
const (
	routineRow = 192
	rangeRow   = 16
	blockRow   = 96
	callRow    = 40
	spanRow    = 48
	textRow    = 32 // which may name an image, or a file
	symbolRow  = 112
)

// program counts the tables of a program, which replace those before.
func (r *rows) program(m *ProgramSection) error {
	r.ofProgram = routineRow*int64(len(m.RoutineName)) + rangeRow*int64(len(m.RangeLo)) +
		blockRow*int64(len(m.BlockAddr)) +
		callRow*int64(len(m.CallName)) + spanRow*int64(len(m.SpanInstructions)) +
		textRow*int64(len(m.TextLength)+len(m.ImageName)+len(m.File))
	return r.check()
}

// symbols counts symbols, which are added to those before.
func (r *rows) symbols(n int) error {
	r.ofSymbols += symbolRow * int64(n)
	return r.check()
}

func (r *rows) check() error {
	if n := r.ofProgram + r.ofSymbols; n > maxRows {
		return fmt.Errorf("tables take %d MiB of memory, more than %d", n>>20, maxRows>>20)
	}
	return nil
}
