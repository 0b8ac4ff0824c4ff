//go:build linux && cgo

package decoder_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"wpptrace/bpf"
	"wpptrace/bpf/usermode"
	"wpptrace/bpf/wire"
	"wpptrace/compress/ops"
	"wpptrace/decoder"
	"wpptrace/kernel-tests/zoo"
	"wpptrace/loader/cfg/recovery"
	"wpptrace/loader/image"
	"wpptrace/loader/plan"
	"wpptrace/loader/plan/planner"
)

// A recorder is a sink that turns operations back into events.
type recorder struct {
	decoder *decoder.Decoder
	plan    *plan.Plan
	events  []event
	marks   []mark
	err     error
}

// A mark stands before the event with its index.
type mark struct {
	at   int
	kind ops.Mark
	n    uint64
}

func (r *recorder) EnterRoutine(id int, by ops.Caller) {
	e := entered | event(id)
	if by == ops.Traced {
		e |= direct
	}
	r.events = append(r.events, e)
}
func (r *recorder) LeaveRoutine() { r.events = append(r.events, left) }
func (r *recorder) Mark(m ops.Mark, n uint64) {
	r.marks = append(r.marks, mark{len(r.events), m, n})
}

func (r *recorder) NewPath(id int, number, times uint64) {
	for range times {
		r.newPath(id, number)
	}
}

func (r *recorder) newPath(id int, number uint64) {
	p, err := r.decoder.Path(id, number)
	if err != nil {
		r.err = err
		return
	}
	for i, b := range p.Blocks {
		insns := r.plan.Routines[id].Blocks[b].Insns
		if i == len(p.Blocks)-1 && p.Insns > 0 {
			insns = insns[:p.Insns]
		}
		if i == 0 {
			if p.Skip > len(insns) {
				r.err = fmt.Errorf("path %d of %s begins after its end: %+v", number,
					r.plan.Routines[id].Name, p)
				return
			}
			insns = insns[p.Skip:]
		}
		for k := range insns {
			r.events = append(r.events, event(insns[k].Addr))
		}
	}
}

// A session is a decoder that reads what a machine sends.
type session struct {
	*recorder
	thread  *decoder.Thread
	log     bytes.Buffer
	batched []wire.Event
	lost    uint64
	hits    uint64
	read    int
}

func newSession(p *plan.Plan) (*session, error) {
	s := &session{}
	d, err := decoder.New(p, slog.New(slog.NewTextHandler(&s.log,
		&slog.HandlerOptions{Level: slog.LevelDebug})))
	if err != nil {
		return nil, err
	}
	s.recorder = &recorder{decoder: d, plan: p}
	s.thread = d.Thread(s.recorder, true)
	return s, nil
}

// take decodes the records that have come since.
func (s *session) take(m *usermode.Machine) error {
	for ; s.read < len(m.Records); s.read++ {
		b, err := wire.ParseBatch(m.Records[s.read])
		if err != nil {
			return err
		}
		if b.Lost > s.lost {
			s.thread.Gap(b.Lost - s.lost)
			s.lost = b.Lost
		}
		s.hits = b.Hits
		for i := range b.Len() {
			s.batched = append(s.batched, b.Event(i))
			s.thread.Take(b.Event(i))
		}
	}
	return s.err
}

// difference shows where two streams part.
func difference(p *plan.Plan, got, want []event, i int) string {
	var out strings.Builder
	show := func(title string, list []event) {
		fmt.Fprintf(&out, "%s:\n", title)
		depth := 0
		for k := max(0, i-14); k < min(len(list), i+8); k++ {
			at := "  "
			if k == i {
				at = "=>"
			}
			fmt.Fprintf(&out, "%s %6d %*s%s\n", at, k, depth, "", place(p, list[k]))
		}
	}
	show("decoded", got)
	show("ran", want)
	return out.String()
}

func place(p *plan.Plan, e event) string {
	switch {
	case e&entered != 0:
		by := ""
		if e&direct != 0 {
			by = " directly"
		}
		return "enter " + p.Routines[e&^(entered|direct)].Name + by
	case e == left:
		return "leave"
	}
	r := p.Program.Containing(uint64(e))
	for b := range r.Blocks {
		for k, q := range r.Blocks[b].Insns {
			if q.Addr == uint64(e) {
				site := ""
				if s := p.Routines[r.ID].Site(b); s != nil && s.Insn == k {
					site = fmt.Sprintf(" site first=%v cond=%d", s.First, s.Condition)
				}
				return fmt.Sprintf("%x %s block %d insn %d/%d end %d%s", uint64(e), r.Name, b, k,
					len(r.Blocks[b].Insns), r.Blocks[b].End, site)
			}
		}
	}
	return fmt.Sprintf("%x in no block of %s", uint64(e), r.Name)
}

func firstDifference(got, want []event) int {
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			return i
		}
	}
	return min(len(got), len(want))
}

// makePlan plans the program at a path.
func makePlan(path string, o planner.Options) (*plan.Plan, error) {
	im, err := image.OpenFile(path)
	if err != nil {
		return nil, err
	}
	defer im.Close()
	c, err := recovery.Recover(im)
	if err != nil {
		return nil, err
	}
	return planner.Make(c, o)
}

// programs are those of the zoo to walk in, each as the compiler makes it at one level.
var programs = map[string]string{
	"alloca": "-O2", "atexit": "-O2", "callbacks": "-O0", "cold": "-O2", "computed_goto": "-O2",
	"exception_callbacks": "-O2", "leaves": "-O2", "longjmp": "-O0",
	"machine": "-O2", "mutual": "-O2", "noreturn": "-O0", "setjmp_again": "-O0",
	"switch_dense": "-O2", "switch_sparse": "-O0", "tailcalls": "-O2", "virtuals": "-O2",
}

// forEachProgram runs a test on the plan of each program.
func forEachProgram(t *testing.T, test func(t *testing.T, p *plan.Plan)) {
	for name, p := range plans(t) {
		t.Run(name, func(t *testing.T) { test(t, p) })
	}
}

// plans compiles and plans the programs, once for all tests.
func plans(t *testing.T) map[string]*plan.Plan {
	t.Helper()
	list, err := planAll()
	if err != nil {
		t.Fatal(err)
	}
	return list
}

var planAll = sync.OnceValues(func() (map[string]*plan.Plan, error) {
	dir, err := os.MkdirTemp("", "walks")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	b, err := zoo.NewBuilder(dir)
	if err != nil {
		return nil, err
	}
	list := map[string]*plan.Plan{}
	for _, program := range zoo.Programs() {
		opt, ok := programs[program.Name]
		if !ok {
			continue
		}
		path, err := b.Build(context.Background(), program,
			zoo.Flavour{Compiler: "gcc", Opt: opt, PIE: true})
		if err != nil {
			return nil, err
		}
		if list[program.Name], err = makePlan(path, planner.Options{Complete: true}); err != nil {
			return nil, err
		}
	}
	return list, nil
})

// once draws how often something happens: once in from to to times, or never.
func once(t *rapid.T, name string, from, to int) int {
	if !rapid.Bool().Draw(t, name+"?") {
		return 0
	}
	return rapid.IntRange(from, to).Draw(t, name)
}

func TestWalksAreDecodedExactly(t *testing.T) {
	forEachProgram(t, func(t *testing.T, p *plan.Plan) {
		rapid.Check(t, func(t *rapid.T) { walkExactly(t, p, habits{}) })
	})
}

func TestCallbacksThrowsAndJumpsAreDecodedExactly(t *testing.T) {
	forEachProgram(t, func(t *testing.T, p *plan.Plan) {
		rapid.Check(t, func(t *rapid.T) {
			walkExactly(t, p, habits{callback: once(t, "callback", 2, 8),
				throw: once(t, "throw", 2, 10), catch: once(t, "catch", 2, 10), jump: once(t,
					"jump", 2, 10), kill: once(t, "kill", 20, 200)})
		})
	})
}

// TestHandlersAreDecodedApart: what a handler interrupts, be it at any instruction, and the handler
// are each whole; the place between them is exact where one probe-free route leads to it, else as
// exact as events are.
func TestHandlersAreDecodedApart(t *testing.T) {
	forEachProgram(t, func(t *testing.T, p *plan.Plan) {
		rapid.Check(t, func(t *rapid.T) {
			walkExactly(t, p, habits{handler: rapid.IntRange(10, 200).Draw(t, "handler"),
				altStack: once(t, "altStack", 1, 3), callback: once(t, "callback", 2, 8)})
		})
	})
}

// TestWalksMetInTheMiddle: of a thread that runs when it is attached to, a contiguous part is
// decoded.
func TestWalksMetInTheMiddle(t *testing.T) {
	forEachProgram(t, func(t *testing.T, p *plan.Plan) {
		rapid.Check(t,
			func(t *rapid.T) {
				walkFromTheMiddle(t, p, habits{callback: once(t, "callback", 2, 8)})
			})
	})
}

// TestWalksWithLosses: between losses contiguous parts are decoded.
func TestWalksWithLosses(t *testing.T) {
	forEachProgram(t, func(t *testing.T, p *plan.Plan) {
		rapid.Check(t,
			func(t *rapid.T) { walkWithLosses(t, p, habits{callback: once(t, "callback", 2, 8)}) })
	})
}

// walkFromTheMiddle meets a thread that runs already, and demands that what is decoded is parts of
// what ran.
func walkFromTheMiddle(t *rapid.T, p *plan.Plan, h habits) *process {
	s := drawProcess(t, p, h)
	s.meetInTheMiddle(t, rapid.IntRange(0, 500).Draw(t, "blocks before"),
		rapid.IntRange(1, 1000).Draw(t, "blocks"))
	return s
}

func (s *process) meetInTheMiddle(t *rapid.T, before, blocks int) {
	s.run(before)
	s.thread, s.midRun = usermode.NewThread(7, 1, true), true
	defer s.thread.Free()
	demandPieces(t, s.finishAndDecode(t, blocks), s)
}

// TestCallAfterWhatWasMetInItsMiddle: what had been met in its middle, and ended by a jump to
// external code, was taken to have jumped on to what its caller called next in the same place.
func TestCallAfterWhatWasMetInItsMiddle(t *testing.T) {
	plans, err := planAll()
	if err != nil {
		t.Fatal(err)
	}
	p := plans["exception_callbacks"]
	rapid.Check(t, func(t *rapid.T) {
		newProcess(p, habits{callback: 2}, 0x5c29d0f4).meetInTheMiddle(t, 19, 37)
	})
}

// walkWithLosses walks while the ring refuses batches, and demands that what is decoded is parts of
// what ran.
func walkWithLosses(t *rapid.T, p *plan.Plan, h habits) *process {
	s := drawProcess(t, p, h)
	s.thread = usermode.NewThread(7, 1, false)
	defer s.thread.Free()
	refuse := rapid.SliceOfN(rapid.Bool(), 1, 8).Draw(t, "refuse")
	n := 0
	s.machine.Output = func([]byte) bool { n++; return !refuse[n%len(refuse)] }
	d := s.finishAndDecode(t, rapid.IntRange(1, 1500).Draw(t, "blocks"))
	demandPieces(t, d, s)
	return s
}

func drawProcess(t *rapid.T, p *plan.Plan, h habits) *process {
	return newProcess(p, h, rapid.Uint64().Draw(t, "seed"))
}

// finishAndDecode runs so many blocks, ends the thread and decodes what it has sent.
func (s *process) finishAndDecode(t *rapid.T, blocks int) *session {
	s.run(blocks)
	for s.isHidden() {
		s.run(1)
	}
	if s.trouble != nil {
		t.Fatal(s.trouble)
	}
	s.kill()
	if s.unknown { // it looks as if what the handler interrupted, or what was left, had died there
		t.Skip("died before an event could say so")
	}
	d, err := newSession(s.plan)
	if err == nil {
		err = d.take(s.machine)
	}
	if err != nil {
		t.Fatal(err)
	}
	if l := s.machine.Losses[7]; l.Lost > d.lost {
		d.thread.Gap(l.Lost - d.lost)
	}
	d.thread.Close()
	if a, m := d.decoder.Anomalies(); a != 0 || m != 0 {
		t.Errorf("%d anomalies, %d ambiguities: %s", a, m, d.log.String())
	}
	if n := s.machine.Metrics[bpf.TracerMetricMETRIC_LONG_CHAIN]; n != 0 {
		t.Errorf("%d times more callers without an event than are followed", n)
	}
	return d
}

// walkExactly walks from the beginning to the thread's end, and demands that every event up to the
// last event comes back, and none that was not.
func walkExactly(t *rapid.T, p *plan.Plan, h habits) *process {
	s := drawProcess(t, p, h)
	s.thread = usermode.NewThread(7, 1, false)
	defer s.thread.Free()
	d := s.finishAndDecode(t, rapid.IntRange(1, 1500).Draw(t, "blocks"))
	got, gotHandlers := split(d.events, d.handlers())
	want, wantHandlers := split(s.truth, s.handlers)
	if h.catch > 0 { // that an activation was left for external code, the next event need not say
		got, want = withoutEnds(got), withoutEnds(want)
	}
	isKnown := h.catch == 0
	got, want = callersOf(got, isKnown), callersOf(want, isKnown)
	if h.handler > 0 {
		forgive(got, want, 0)
	} else {
		forgive(got, want, lastHit(want))
	}
	demand(t, d, "the thread", trimmed(got), trimmed(want))
	for i, handler := range gotHandlers {
		if i >= len(wantHandlers) {
			t.Fatalf("%d handlers ran, %d were decoded", len(wantHandlers), len(gotHandlers))
		}
		got, want := callersOf(handler, isKnown), callersOf(wantHandlers[i], isKnown)
		forgive(got, want, 0)
		demand(t, d, fmt.Sprintf("handler %d", i), trimmed(got), trimmed(want))
	}
	return s
}

// callersOf leaves it open who began some activations: of those that begin where one has just ended
// that external code had called, for what that had called may seem to have jumped to what it calls
// next in the same place; or of all.
func callersOf(events []event, known bool) []event {
	events = slices.Clone(events)
	var open []event
	ended := entered // of the one that has just ended: what it began with
	for i, e := range events {
		switch {
		case e&entered != 0:
			if !known || i > 0 && events[i-1] == left && ended&direct == 0 {
				events[i] &^= direct
			}
			open = append(open, events[i])
		case e == left && len(open) > 0:
			ended, open = open[len(open)-1], open[:len(open)-1]
		}
	}
	return events
}

// forgive takes out of want, from an event on, which activations were begun directly of which that
// is not known: a handler, or the thread's end, came before their first event.
func forgive(got, want []event, from int) {
	for i := from; i < min(len(got), len(want)); i++ {
		if want[i] == got[i]|direct && got[i]&entered != 0 {
			want[i] = got[i]
		}
	}
}

// lastHit is the index behind the last hit.
func lastHit(events []event) int {
	n := len(events)
	for n > 0 && events[n-1]&probed == 0 {
		n--
	}
	return n
}

func withoutEnds(events []event) []event {
	return slices.DeleteFunc(slices.Clone(events), func(e event) bool { return e == left })
}

// trimmed takes off the end activations that have not run yet and the ends of others: whether they
// have begun, or ended, nobody can know.
func trimmed(events []event) []event {
	n := len(events)
	for n > 0 && (events[n-1] == left || events[n-1]&entered != 0) {
		n--
	}
	return events[:n]
}

// demand fails unless got is the beginning of want, and holds all up to its last event.
func demand(t *rapid.T, d *session, what string, got, want []event) {
	known := lastHit(want)
	want = withoutHits(want)
	i := firstDifference(got, want)
	if i == len(got) && i >= known {
		return
	}
	t.Fatalf("%s: event %d of %d differs (%d decoded, %d known, marks %v)\n%s", what, i, len(want),
		len(got), known, d.marks, difference(d.plan, got, want, i))
}

// withoutHits is events without the bit that says which of them were hits.
func withoutHits(events []event) []event {
	list := slices.Clone(events)
	for i := range list {
		list[i] &^= probed
	}
	return list
}

// demandPieces fails unless what was decoded is parts of what ran, in order, with holes only at gap
// and resume marks.
func demandPieces(t *rapid.T, d *session, s *process) {
	ran := instructions(withoutHits(s.truth))
	at := 0
	for _, piece := range d.pieces() {
		k, best, i := at, at, 0 // where it fits, or where the most of it does
		for ; k+len(piece) <= len(ran); k++ {
			n := firstDifference(piece, ran[k:])
			if n == len(piece) {
				break
			}
			if n > i {
				best, i = k, n
			}
		}
		if k+len(piece) > len(ran) {
			t.Fatalf("a piece of %d events is no part of what ran after event %d; marks %v\n%s",
				len(piece), at, d.marks, difference(d.plan, piece, ran[best:], i))
		}
		at = k + len(piece)
	}
}

// pieces cuts the instructions at gap and resume marks.
func (r *recorder) pieces() (list [][]event) {
	from := 0
	for _, m := range append(r.marks, mark{at: len(r.events), kind: ops.Gap}) {
		if m.kind != ops.Gap && m.kind != ops.Resume {
			continue
		}
		if piece := instructions(r.events[from:m.at]); len(piece) > 0 {
			list = append(list, piece)
		}
		from = m.at
	}
	return list
}

func instructions(events []event) (list []event) {
	for _, e := range events {
		if e&(entered|left) == 0 {
			list = append(list, e)
		}
	}
	return list
}

// handlers are the indices of the events with which signal handlers begin.
func (r *recorder) handlers() map[int]bool {
	at := map[int]bool{}
	for _, m := range r.marks {
		if m.kind == ops.Handler {
			at[m.at] = true
		}
	}
	return at
}

// split takes the activations of signal handlers, by the events with which they begin, out of a
// stream.
func split(events []event, begins map[int]bool) (main []event, handlers [][]event) {
	type stream struct{ handler, depth int }
	stack := []stream{{handler: -1}}
	for i, e := range events {
		if begins[i] {
			stack = append(stack, stream{handler: len(handlers)})
			handlers = append(handlers, nil)
		}
		top := &stack[len(stack)-1]
		if top.handler < 0 {
			main = append(main, e)
		} else {
			handlers[top.handler] = append(handlers[top.handler], e)
		}
		switch {
		case e&entered != 0:
			top.depth++
		case e == left:
			top.depth--
			if top.depth == 0 && top.handler >= 0 {
				stack = stack[:len(stack)-1]
			}
		}
	}
	return main, handlers
}
