package wpp

import (
	"errors"
	"fmt"
)

// maxInstruction is the length of the longest instruction in bytes.
const maxInstruction = 15

// Check reports the first thing in a snapshot that readers could not rely on: an index out of
// range, an unknown kind, an empty block, a thread without a grammar. Read has checked what it
// returns; Write checks what it is given. It costs a pass over the snapshot.
func (s *Snapshot) Check() error {
	if err := s.checkCalls(); err != nil {
		return err
	}
	if err := s.checkSections(); err != nil {
		return err
	}
	for i := range s.Routines {
		if err := s.checkRoutine(&s.Routines[i]); err != nil {
			return fmt.Errorf("routine %d: %w", i, err)
		}
	}
	for i := range s.Symbols {
		if err := s.checkSymbol(&s.Symbols[i]); err != nil {
			return fmt.Errorf("symbol %d: %w", i, err)
		}
	}
	for i := range s.Threads {
		if err := s.checkThread(&s.Threads[i]); err != nil {
			return fmt.Errorf("thread %d: %w", i, err)
		}
	}
	return nil
}

// checkIndex reports an index into a table of n rows that is out of range.
func checkIndex(what string, i, n int) error {
	if i < 0 || i >= n {
		return fmt.Errorf("%s %d of %d", what, i, n)
	}
	return nil
}

func (s *Snapshot) checkRoutine(r *Routine) error {
	if err := checkIndex("image", r.Image, len(s.Images)); err != nil {
		return err
	}
	for _, rg := range r.Ranges {
		if rg.Lo >= rg.Hi {
			return fmt.Errorf("range %x to %x", rg.Lo, rg.Hi)
		}
	}
	for i := range r.Blocks {
		if err := s.checkBlock(&r.Blocks[i]); err != nil {
			return fmt.Errorf("block %d: %w", i, err)
		}
	}
	return nil
}

func (s *Snapshot) checkBlock(b *Block) error {
	if len(b.Lengths) == 0 {
		return errors.New("no instructions")
	}
	end := b.Addr
	for _, n := range b.Lengths {
		if n == 0 || n > maxInstruction {
			return fmt.Errorf("an instruction of %d bytes", n)
		}
		end += uint64(n)
	}
	if end < b.Addr {
		return fmt.Errorf("runs past the end of the address space from %x", b.Addr)
	}
	if err := s.checkLines(b.File, b.Line, b.Last); err != nil {
		return err
	}
	return s.checkSpans(b)
}

func (s *Snapshot) checkSymbol(p *Symbol) error {
	if p.IsMark {
		if !p.Mark.Valid() {
			return fmt.Errorf("unknown %v", p.Mark)
		}
		return nil
	}
	if err := checkIndex("routine", p.Routine, len(s.Routines)); err != nil {
		return err
	}
	if !p.Start.Valid() || !p.End.Valid() {
		return fmt.Errorf("path from unknown %v to %v", p.Start, p.End)
	}
	blocks := s.Routines[p.Routine].Blocks
	for _, b := range p.Blocks {
		if err := checkIndex("block", b, len(blocks)); err != nil {
			return err
		}
	}
	return checkPartial(p, blocks)
}

// checkPartial makes sure that skipping and cutting instructions leaves no negative number of them
// anywhere.
func checkPartial(p *Symbol, blocks []Block) error {
	first, last := 0, 0
	if n := len(p.Blocks); n > 0 {
		first = len(blocks[p.Blocks[0]].Lengths)
		last = len(blocks[p.Blocks[n-1]].Lengths)
		if n == 1 && p.Skip <= last {
			last -= p.Skip
		}
	}
	if p.Skip < 0 || p.Skip > first {
		return fmt.Errorf("skips %d of %d instructions", p.Skip, first)
	}
	if p.Cut < 0 || p.Cut > last {
		return fmt.Errorf("cuts %d of %d instructions", p.Cut, last)
	}
	return nil
}

func (s *Snapshot) checkThread(t *Thread) error {
	if t.Grammar == nil {
		return errors.New("no grammar")
	}
	if t.Grammar.segments != nil { // which are checked when they are read
		return CheckJoin(t.Grammar.segments.list)
	}
	return t.Grammar.CheckTerminals(len(s.Symbols))
}
