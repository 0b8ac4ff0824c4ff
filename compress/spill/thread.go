package spill

import (
	"errors"

	"wpptrace/compress/sequitur"
	"wpptrace/compress/wpp"
)

// A Thread is the stream of a thread: segments, and a grammar that grows.
type Thread struct {
	TID  int
	Name string

	recording *Recording
	number    int
	segments  []*wpp.Segment
	grammar   *sequitur.Grammar // nil: it has ended, or one grows from the next symbol on
	// what there was in grammar at the end; nil: it has not ended, or there was nothing, or that
	// was spilled
	ended   *wpp.Grammar
	bytes   uint64 // that count as used
	until   int    // symbols until they are counted again
	spilled size
}

// A size is that of grammars.
type size struct{ length, rules, symbols uint64 }

// lookEvery is how many runs of a symbol a thread appends between two looks at its memory.
const lookEvery = 1 << 10

// Append appends a symbol to the thread's stream, so many times.
func (t *Thread) Append(sym uint32, times uint64) {
	t.grow()
	t.grammar.AppendRun(sym, times)
	if t.until--; t.until == 0 {
		t.look()
	}
}

// AppendAll appends symbols to the thread's stream.
func (t *Thread) AppendAll(symbols []uint32) {
	for len(symbols) > 0 {
		n := min(len(symbols), t.until)
		t.grow()
		t.grammar.AppendAll(symbols[:n])
		if t.until -= n; t.until == 0 {
			t.look()
		}
		symbols = symbols[n:]
	}
}

// grow makes the grammar that the next symbol goes into: a thread may have none, and there may be
// many such.
func (t *Thread) grow() {
	if t.grammar == nil {
		t.grammar = sequitur.NewFolding()
	}
}

// look counts the thread's memory, and keeps the limits.
func (t *Thread) look() {
	t.until = lookEvery
	t.recording.poll()
	t.count()
	t.recording.fit(t)
}

// isLong reports whether the segment that grows derives as much as one may.
func (t *Thread) isLong() bool {
	most := t.recording.limits.Symbols
	return most > 0 && t.grammar != nil && t.grammar.Length() >= most
}

// count counts the thread's memory anew.
func (t *Thread) count() {
	bytes := uint64(0)
	switch {
	case t.grammar != nil:
		// What growing, and copying its rules when it is closed, takes for a moment comes on top.
		bytes = t.grammar.Bytes()/8*11 + t.grammar.UnfoldingBytes()
	case t.ended != nil:
		const eachSymbol, eachRule = 4, 48
		bytes = eachSymbol*uint64(t.ended.BodySymbols()) + eachRule*uint64(t.ended.Rules())
	}
	t.recording.used += bytes - t.bytes
	t.bytes = bytes
}

// close returns the rules of what the thread has in memory, and frees it. If the thread goes on, it
// does so with an empty grammar.
func (t *Thread) close() (bodies [][]uint32) {
	if t.ended != nil {
		for r := range t.ended.Rules() {
			bodies = append(bodies, t.ended.Body(r))
		}
		t.ended = nil
	} else {
		bodies = t.grammar.Rules()
		t.spilled.add(t.grammar)
		t.grammar.Release()
		t.grammar = nil
	}
	t.count()
	return bodies
}

func (s *size) add(g *sequitur.Grammar) {
	s.length += g.Length()
	s.rules += uint64(g.NumRules())
	s.symbols += uint64(g.Symbols())
}

// End lets go of what only a thread that goes on needs.
func (t *Thread) End() {
	if t.grammar == nil {
		return
	}
	t.ended = wpp.FromSequitur(t.grammar)
	t.spilled.add(t.grammar)
	t.grammar.Release()
	t.grammar = nil
	t.count()
}

// Size returns how large the thread's stream is, and its grammars are: rules and the symbols on
// their right-hand sides.
func (t *Thread) Size() (length, rules, symbols uint64) {
	all := t.spilled
	if t.grammar != nil {
		all.add(t.grammar)
	}
	return all.length, all.rules, all.symbols
}

// Copy copies what the thread will change, which is quick, and leaves the rest to complete, which
// may run while the thread goes on: it makes the grammar of the stream so far.
func (t *Thread) Copy() (complete func() (*wpp.Grammar, error)) {
	if j := t.recording.job; j != nil && j.thread == t {
		t.recording.wait()
	}
	segments := append([]*wpp.Segment(nil), t.segments...)
	ended := t.ended
	var bodies [][]uint32
	if t.grammar != nil {
		bodies = t.grammar.Rules()
	}
	return func() (g *wpp.Grammar, err error) {
		switch {
		case ended != nil:
			segments = append(segments, wpp.NewSegment(ended))
		case bodies != nil:
			if g, err = wpp.NewGrammar(bodies); err != nil {
				return nil, err
			}
			segments = append(segments, wpp.NewSegment(g))
		}
		for _, s := range segments {
			if s == nil {
				return nil, errors.New("a segment is missing")
			}
		}
		return wpp.Join(segments), nil
	}
}
