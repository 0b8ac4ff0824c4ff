package wpp

import (
	"errors"
	"fmt"
	"iter"
	"math"
)

// A Call is one in whose place the compiler has put the code of the routine that is called.
type Call struct {
	Name string // of the routine that is called, demangled; "" where it is not known
	File int    // of the call: index in Snapshot.Files; means nothing where Line is 0
	Line int    // of the call; 0: not known
	// the number of the call that this one is in, which is lower than its own; 0: the routine that
	// has the code calls itself
	In int
}

// A Span is instructions of a block, one behind the other, whose code is of the same calls and, but
// in files of older recordings, of one source line.
type Span struct {
	From, To int // the instructions [From, To) of the block
	Call     int // the number of the innermost call; 0: they are the routine's own
	File     int // as of a block, for these instructions
	Line     int
	Last     int // above Line: of the lines between, it is not known which they are of
}

// Stack iterates over a call and those that it is in, the innermost first, by its number in Calls,
// from 1; there are none in 0.
func (s *Snapshot) Stack(call int) iter.Seq[*Call] {
	return func(yield func(*Call) bool) {
		for call > 0 && yield(&s.Calls[call-1]) {
			call = s.Calls[call-1].In
		}
	}
}

// Spans iterates over the stretches that a piece ran some of whose code is of the same calls, with
// the line of their first instruction, and of their last where it is in the same file: without
// inlined code, that is one for the block.
func (p Piece) Spans() iter.Seq[Span] {
	return func(yield func(Span) bool) {
		var all Span
		for x := range p.Lines() {
			if all.To > 0 && x.Call == all.Call {
				all.To, all.Last = x.To, all.Line
				if x.File == all.File && all.Line > 0 {
					all.Last = max(all.Line, x.Last)
				}
				continue
			}
			if all.To > 0 && !yield(all) {
				return
			}
			all = x
		}
		if all.To > 0 {
			yield(all)
		}
	}
}

// Lines iterates over the spans that a piece ran some of, cut to what it ran: of a block that has
// none, that is the block.
func (p Piece) Lines() iter.Seq[Span] {
	return func(yield func(Span) bool) {
		b := p.Block
		spans := b.Spans
		if spans == nil {
			spans = []Span{{To: len(b.Lengths), File: b.File, Line: b.Line, Last: b.Last}}
		}
		for _, x := range spans {
			x.From, x.To = max(x.From, p.From), min(x.To, p.To)
			if x.From < x.To && !yield(x) {
				return
			}
		}
	}
}

// maxStack is how many calls may be in each other: who asks goes through all of them for each span.
const maxStack = 1 << 10

func (s *Snapshot) checkCalls() error {
	depths := make([]int, 1+len(s.Calls))
	for i, c := range s.Calls {
		err := s.checkLines(c.File, c.Line, c.Line)
		switch {
		case err != nil:
		case c.In < 0 || c.In > i:
			err = fmt.Errorf("is in call %d", c.In)
		case depths[c.In] == maxStack:
			err = fmt.Errorf("is in more than %d others", maxStack)
		}
		if err != nil {
			return fmt.Errorf("call %d: %w", i+1, err)
		}
		depths[i+1] = depths[c.In] + 1
	}
	return nil
}

// checkSpans makes sure that the spans of a block, if there are any, are all of it, one behind the
// other.
func (s *Snapshot) checkSpans(b *Block) error {
	at := 0
	for _, x := range b.Spans {
		if x.From != at || x.To <= at {
			return fmt.Errorf("span from %d to %d stands at %d", x.From, x.To, at)
		}
		at = x.To
		if err := checkIndex("call", x.Call, 1+len(s.Calls)); err != nil {
			return err
		}
		if err := s.checkLines(x.File, x.Line, x.Last); err != nil {
			return err
		}
	}
	if b.Spans != nil && at != len(b.Lengths) {
		return errors.New("spans do not have as many instructions")
	}
	return nil
}

func (s *Snapshot) checkLines(file, line, last int) error {
	if line < 0 || last < line || last > math.MaxInt32 || line == 0 && last != 0 {
		return fmt.Errorf("lines %d to %d", line, last)
	}
	if line == 0 {
		return nil
	}
	return checkIndex("file", file, len(s.Files))
}
