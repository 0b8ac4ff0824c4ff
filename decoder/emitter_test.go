package decoder

import (
	"fmt"
	"slices"
	"testing"

	"wpptrace/compress/ops"
	"wpptrace/decoder/route"
)

// A spelled is a sink that spells the operations.
type spelled struct{ ops []string }

func (s *spelled) EnterRoutine(int, ops.Caller) { s.ops = append(s.ops, "enter") }
func (s *spelled) LeaveRoutine()                { s.ops = append(s.ops, "leave") }
func (s *spelled) NewPath(_ int, n, _ uint64)   { s.ops = append(s.ops, fmt.Sprint("path ", n)) }
func (s *spelled) Mark(m ops.Mark, _ uint64)    { s.ops = append(s.ops, fmt.Sprint("mark ", m)) }
func (s *spelled) is(want ...string) bool       { return slices.Equal(s.ops, want) }

// emitterOf emits for a routine of one block that returns.
func emitterOf(t *testing.T) (*emitter, *spelled, *route.Routine) {
	t.Helper()
	d, s := decoderOfOne(t), &spelled{}
	return &emitter{d: d, sink: s}, s, d.program.Routines[0]
}

// TestPathThatReturns: from the entry out of the routine one whole path ends, and the activation.
func TestPathThatReturns(t *testing.T) {
	e, s, r := emitterOf(t)
	f := &frame{activation: activation{r, 0x7f00}, pos: r.AtEntry()}
	out, n := f.pos.ReturnsBy(false)
	if n != 1 {
		t.Fatalf("%d ways out, want 1", n)
	}
	e.apply(f, out.Transition)
	if !s.is("path 0", "leave") {
		t.Errorf("emitted %q", s.ops)
	}
}

// TestPathThatWasMetInItsMiddle: what resumed has no whole path, but a partial one.
func TestPathThatWasMetInItsMiddle(t *testing.T) {
	e, s, r := emitterOf(t)
	f := &frame{activation: activation{r, 0x7f00}}
	e.resumeAt(f, 0)
	out, _ := f.pos.ReturnsBy(false)
	e.apply(f, out.Transition)
	if first := fmt.Sprint("path ", r.Numbers.Total); !s.is(first, "leave") {
		t.Errorf("emitted %q, want %s first", s.ops, first)
	}
	if p := e.d.partials[0][0]; p.Start != ops.StartResume || p.End != ops.EndReturn ||
		len(p.Blocks) != 1 {
		t.Errorf("the partial path is %+v", p)
	}
}

// TestCutPathIsEmittedOnce: what is known of a path is emitted as it is cut off, and nothing is
// left of it then.
func TestCutPathIsEmittedOnce(t *testing.T) {
	e, s, r := emitterOf(t)
	f := &frame{activation: activation{r, 0x7f00}}
	e.resumeAt(f, 0)
	if !e.cutPath(f) || len(s.ops) != 2 {
		t.Fatalf("emitted %q, want a path and a mark", s.ops)
	}
	if e.cutPath(f) || len(s.ops) != 2 {
		t.Errorf("emitted %q: cut off twice", s.ops)
	}
}

// TestEmitterCountsWhatItCannotSay: a path that cannot begin where it is said to is an anomaly.
func TestEmitterCountsWhatItCannotSay(t *testing.T) {
	e, _, r := emitterOf(t)
	f := &frame{activation: activation{r, 0x7f00}}
	e.beginPath(f, 0, ops.StartPad)
	if n, _ := e.d.Anomalies(); n != 1 {
		t.Errorf("%d anomalies, want 1", n)
	}
	if f.path.start != ops.StartResume {
		t.Errorf("the path began with %v, want a resume", f.path.start)
	}
}
