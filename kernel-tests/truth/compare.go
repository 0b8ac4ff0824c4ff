package truth

import (
	"fmt"
	"slices"
	"strings"
)

// A Mode says what Compare demands.
type Mode uint8

// The modes.
const (
	// Exact demands the same instructions in the same order. After a cut mark the truth may have
	// more of the block that was cut off.
	Exact Mode = iota
	// Apart is Exact with signal handlers taken out, for programs whose handlers interrupt the
	// middle of a path: what was interrupted is compared without its handlers, and after a cut mark
	// the truth may have what ran without an event up to its handler, and each handler activation
	// with the truth's. A handler of a timer may run any number of times, like any of the truth's;
	// the others as often as in the truth, in the same order.
	Apart
	// Contiguous demands that each stream is a contiguous part of the truth, with holes only where
	// events were lost: for a tracer that was attached while the program ran.
	Contiguous
	// Pieces admits holes at resume marks too: for a program that was met beneath code that is not
	// traced.
	Pieces
)

// Compare compares the tracer's streams with the truth, restricted to the traced routines.
// Threads are paired in order of appearance; threads without a traced instruction are left
// aside. The error shows the first difference of the first thread that differs, with its
// neighbourhood.
func Compare(got []*Stream, want *Trace, routines Routines, mode Mode) error {
	got = slices.DeleteFunc(slices.Clone(got), func(s *Stream) bool { return len(s.Insns) == 0 })
	var wanted []*Thread
	for _, t := range want.Threads {
		if len(routines.traced(t.Insns)) > 0 {
			wanted = append(wanted, t)
		}
	}
	if len(got) != len(wanted) && (mode < Contiguous || len(got) > len(wanted)) {
		return fmt.Errorf("%d threads in the record, %d in the truth", len(got), len(wanted))
	}
	for i, s := range got {
		if err := compareThread(s, wanted[i], routines, mode); err != nil {
			return fmt.Errorf("thread %d (id %d): %w", i, s.TID, err)
		}
	}
	return nil
}

func compareThread(got *Stream, want *Thread, routines Routines, mode Mode) error {
	for i, pc := range got.Insns {
		if r, ok := routines.Find(pc); !ok || !r.Traced {
			return fmt.Errorf("instruction %d, %s, is not in a traced routine", i,
				routines.place(pc))
		}
	}
	m := matcher{got: got, routines: routines, apart: mode == Apart}
	switch mode {
	case Contiguous:
		return m.contiguous(routines.traced(want.Insns), "gap")
	case Pieces:
		return m.contiguous(routines.traced(want.Insns), "gap", "resume")
	case Apart:
		main, handlers := want.Split()
		m.stack = []*expectation{{want: routines.traced(main)}}
		for _, h := range handlers {
			h.Insns = routines.traced(h.Insns)
			m.addHandler(h)
		}
	default:
		m.stack = []*expectation{{want: routines.traced(want.Insns)}}
	}
	return m.match()
}

// A matcher follows a stream along the truth, which in mode Apart is a stack: the interrupted
// stream and running handlers.
type matcher struct {
	got      *Stream
	routines Routines
	stack    []*expectation
	ordered  [][]uint64 // handler activations still to come, in order
	timers   [][]uint64 // distinct activations of timer handlers
	apart    bool
}

// An expectation is what should come of one stream.
type expectation struct {
	want []uint64
	next int
	cut  bool // a cut mark stands here: the truth may have more of this block
}

func (m *matcher) addHandler(a Activation) {
	const sigALRM, sigVTALRM, sigPROF = 14, 26, 27
	switch {
	case len(a.Insns) == 0:
	case a.Signal != sigALRM && a.Signal != sigVTALRM && a.Signal != sigPROF:
		m.ordered = append(m.ordered, a.Insns)
	case !slices.ContainsFunc(m.timers, func(t []uint64) bool { return slices.Equal(t, a.Insns) }):
		m.timers = append(m.timers, a.Insns)
	}
}

func (m *matcher) top() *expectation { return m.stack[len(m.stack)-1] }

func (m *matcher) match() error {
	marks := m.got.Marks
	for i, pc := range m.got.Insns {
		marks = m.passMarks(marks, i)
		for !m.advance(pc) {
			if !m.leaveCutHandler() && !m.enterHandler(i) {
				return m.difference(i)
			}
		}
	}
	m.passMarks(marks, len(m.got.Insns))
	for len(m.stack) > 1 && m.leaveCutHandler() {
	}
	end := m.top()
	if len(m.stack) > 1 || end.next < len(end.want) && !(end.cut && m.tail(end, len(end.want))) {
		return m.difference(len(m.got.Insns))
	}
	if len(m.ordered) > 0 {
		return fmt.Errorf("%d handler activations of the truth are missing, the first at %s",
			len(m.ordered), m.routines.place(m.ordered[0][0]))
	}
	return nil
}

// passMarks notes the cuts that stand before instruction i.
func (m *matcher) passMarks(marks []Mark, i int) []Mark {
	for len(marks) > 0 && marks[0].Index <= i {
		if marks[0].Kind == "cut" {
			m.top().cut = true
		}
		marks = marks[1:]
	}
	return marks
}

// advance takes one instruction if it is the next of the innermost stream, or the first after a
// tail that was cut off.
func (m *matcher) advance(pc uint64) bool {
	e := m.top()
	at := e.next
	if e.cut {
		for at < len(e.want) && e.want[at] != pc {
			at++
			if !m.tail(e, at) {
				return false
			}
		}
	}
	if at >= len(e.want) || e.want[at] != pc {
		return false
	}
	e.next, e.cut = at+1, false
	for len(m.stack) > 1 && m.top().next == len(m.top().want) {
		m.stack = m.stack[:len(m.stack)-1]
	}
	return true
}

// tail says whether the truth from e.next to end may be what a cut left out: instructions of one
// routine, the one that was left, each right after the other. What a handler interrupts may have
// gone on without an event in any way, into other routines by their entries and back, for a while.
func (m *matcher) tail(e *expectation, end int) bool {
	const (
		longest = 15 // bytes an instruction
		most    = 64 // instructions
	)
	if m.apart && end-e.next > most {
		return false
	}
	for i := e.next; i < end; i++ {
		switch {
		case i == e.next:
			if i > 0 && !m.sameRoutine(e.want[i-1], e.want[i]) {
				return false
			}
		case m.apart && (m.isEntry(e.want[i]) || slices.ContainsFunc(e.want[max(e.next-1, 0):i],
			func(pc uint64) bool { return m.sameRoutine(pc, e.want[i]) })):
		case e.want[i] == e.want[i-1] || e.want[i]-e.want[i-1] > longest:
			return false
		}
	}
	return true
}

func (m *matcher) isEntry(pc uint64) bool {
	r, ok := m.routines.Find(pc)
	return ok && r.Start == pc
}

// sameRoutine compares names: a routine's cold part is a range of its own.
func (m *matcher) sameRoutine(a, b uint64) bool {
	ra, _ := m.routines.Find(a)
	rb, _ := m.routines.Find(b)
	return ra == rb || ra.Name != "" && ra.Name == rb.Name
}

// leaveCutHandler ends a handler whose tail was cut off.
func (m *matcher) leaveCutHandler() bool {
	e := m.top()
	if len(m.stack) == 1 || !e.cut || !m.tail(e, len(e.want)) {
		return false
	}
	m.stack = m.stack[:len(m.stack)-1]
	return true
}

// enterHandler begins the handler activation that starts with instruction i: the next in order, or
// the timer's that agrees longest with what follows.
func (m *matcher) enterHandler(i int) bool {
	rest := m.got.Insns[i:]
	if len(m.ordered) > 0 && m.ordered[0][0] == rest[0] {
		m.stack = append(m.stack, &expectation{want: m.ordered[0]})
		m.ordered = m.ordered[1:]
		return true
	}
	var best []uint64
	longest := 0
	for _, t := range m.timers {
		if n := commonPrefix(t, rest); n > longest || n == longest && n > 0 && len(t) < len(best) {
			best, longest = t, n
		}
	}
	if longest == 0 {
		return false
	}
	m.stack = append(m.stack, &expectation{want: best})
	return true
}

func commonPrefix(a, b []uint64) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// contiguous looks for the stream's pieces between some kinds of marks in the truth, one after the
// other, each as early as it fits.
func (m *matcher) contiguous(want []uint64, holes ...string) error {
	from, at := 0, 0
	piece := func(to int) error {
		insns := m.got.Insns[from:to]
		for at+len(insns) <= len(want) && !slices.Equal(want[at:at+len(insns)], insns) {
			at++
		}
		if at+len(insns) > len(want) {
			return fmt.Errorf("instructions %d to %d of the record, from %s on, are not a "+
				"contiguous part of the truth that follows",
				from, to, m.routines.place(insns[0]))
		}
		from, at = to, at+len(insns)
		return nil
	}
	for _, mark := range m.got.Marks {
		if slices.Contains(holes, mark.Kind) && mark.Index > from {
			if err := piece(mark.Index); err != nil {
				return err
			}
		}
	}
	if from < len(m.got.Insns) {
		return piece(len(m.got.Insns))
	}
	return nil
}

// difference describes where the record's instruction i and the truth part.
func (m *matcher) difference(i int) error {
	const before, after = 10, 10
	e := m.top()
	var b strings.Builder
	fmt.Fprintf(&b, "instruction %d differs", i)
	if len(m.stack) > 1 {
		b.WriteString(" (in a signal handler)")
	}
	b.WriteString("\n  record:\n")
	for k := max(0, i-before); k < min(len(m.got.Insns), i+after); k++ {
		for _, mark := range m.got.Marks {
			if mark.Index == k {
				fmt.Fprintf(&b, "      #%s\n", mark.Kind)
			}
		}
		m.line(&b, k == i, m.got.Insns[k])
	}
	if i == len(m.got.Insns) {
		b.WriteString("   => end\n")
	}
	b.WriteString("  truth:\n")
	for k := max(0, e.next-before); k < min(len(e.want), e.next+after); k++ {
		m.line(&b, k == e.next, e.want[k])
	}
	if e.next == len(e.want) {
		b.WriteString("   => end\n")
	}
	return fmt.Errorf("%s", strings.TrimSuffix(b.String(), "\n"))
}

func (m *matcher) line(b *strings.Builder, here bool, pc uint64) {
	arrow := "     "
	if here {
		arrow = "   =>"
	}
	fmt.Fprintf(b, "%s %s\n", arrow, m.routines.place(pc))
}
