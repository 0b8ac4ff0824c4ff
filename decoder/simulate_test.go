//go:build linux && cgo

package decoder_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"wpptrace/bpf/usermode"
	"wpptrace/bpf/wire"
	"wpptrace/compress/ops"
	"wpptrace/decoder"
	"wpptrace/loader/cfg"
	"wpptrace/loader/image"
	"wpptrace/loader/plan"
)

// A recorder is a sink that turns operations back into events.
type recorder struct {
	t       *testing.T
	decoder *decoder.Decoder
	plan    *plan.Plan
	events  []event
	marks   []mark
	open    int
	err     error
}

// A mark stands before the event with its index.
type mark struct {
	at   int
	kind ops.Mark
	n    uint64
}

func (r *recorder) EnterRoutine(id int) { r.events = append(r.events, entered|event(id)) }
func (r *recorder) LeaveRoutine()       { r.events = append(r.events, left) }
func (r *recorder) Mark(m ops.Mark, n uint64) {
	r.marks = append(r.marks, mark{len(r.events), m, n})
}

func (r *recorder) NewPath(id int, number uint64) {
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
				r.err = fmt.Errorf("path %d of %s begins after its end: %+v", number, r.plan.Routines[id].Name, p)
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
	thread *decoder.Thread
	log    bytes.Buffer
	words  []wire.Word
	lost   uint64
	hits   uint64
	read   int
}

func newSession(p *plan.Plan) (*session, error) {
	s := &session{}
	d, err := decoder.New(p, slog.New(slog.NewTextHandler(&s.log, nil)))
	if err != nil {
		return nil, err
	}
	s.recorder = &recorder{decoder: d, plan: p}
	s.thread = d.Thread(s.recorder)
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
			s.words = append(s.words, b.Word(i))
			s.thread.Word(b.Word(i))
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
		return "enter " + p.Routines[e&^entered].Name
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
				return fmt.Sprintf("%x %s block %d insn %d/%d end %d%s", uint64(e), r.Name, b, k, len(r.Blocks[b].Insns), r.Blocks[b].End, site)
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
func makePlan(path string, o plan.Options) (*plan.Plan, error) {
	im, err := image.OpenFile(path)
	if err != nil {
		return nil, err
	}
	defer im.Close()
	c, err := cfg.Recover(im)
	if err != nil {
		return nil, err
	}
	return plan.Make(c, o)
}

func TestWalksAreDecodedExactly(t *testing.T) {
	list, _ := filepath.Glob("/tmp/unit/bin/*")
	for _, path := range list {
		t.Run(filepath.Base(path), func(t *testing.T) {
			p, err := makePlan(path, plan.Options{Complete: true})
			if err != nil {
				t.Fatal(err)
			}
			rapid.Check(t, func(rt *rapid.T) { walkExactly(rt, p, drawHabits(rt)) })
		})
	}
}

func drawHabits(t *rapid.T) habits {
	one := func(name string, from, to int) int {
		if os.Getenv("NO_"+strings.ToUpper(name)) != "" {
			return 0
		}
		if !rapid.Bool().Draw(t, name+"?") {
			return 0
		}
		return rapid.IntRange(from, to).Draw(t, name)
	}
	return habits{callback: one("callback", 2, 8), throw: one("throw", 2, 10), jump: one("jump", 2, 10), handler: one("handler", 10, 200), altStack: one("altStack", 1, 3), kill: one("kill", 20, 200)}
}

// walkExactly walks from the beginning to the thread's end, and demands that every event comes back.
func walkExactly(t *rapid.T, p *plan.Plan, h habits) {
	seed := rapid.Uint64().Draw(t, "seed")
	blocks := rapid.IntRange(1, 3000).Draw(t, "blocks")
	s := newProcess(p, h, seed)
	s.thread = usermode.NewThread(7, 1, false)
	defer s.thread.Free()
	s.run(blocks)
	if s.trouble != nil {
		t.Fatal(s.trouble)
	}
	s.kill()
	d, err := newSession(p)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.take(s.machine); err != nil {
		t.Fatal(err)
	}
	d.thread.Close()
	if a, m := d.decoder.Anomalies(); a != 0 || m != 0 {
		t.Errorf("%d anomalies, %d ambiguities: %s", a, m, d.log.String())
	}
	got, gotHandlers := split(d.events, d.handlers())
	want, wantHandlers := split(s.truth, s.handlers)
	explain := func(what string, got, want []event) {
		i := firstDifference(got, want)
		for _, w := range d.words[max(0, len(d.words)-14):] {
			t.Log(w)
		}
		t.Logf("marks: %v", d.marks)
		if f := os.Getenv("DUMP"); f != "" {
			var b strings.Builder
			for _, w := range d.words {
				fmt.Fprintln(&b, w)
			}
			mk := d.marks
			for k, e := range got {
				for len(mk) > 0 && mk[0].at <= k {
					fmt.Fprintf(&b, "MARK %v %d\n", mk[0].kind, mk[0].n)
					mk = mk[1:]
				}
				fmt.Fprintln(&b, "got", k, place(p, e))
			}
			for k, e := range want {
				fmt.Fprintln(&b, "ran", k, place(p, e))
			}
			os.WriteFile(f, []byte(b.String()), 0o644)
		}
		t.Fatalf("%s: event %d of %d differs (%d decoded)\n%s", what, i, len(want), len(got), difference(p, got, want, i))
	}
	known := s.known
	if len(wantHandlers) > 0 {
		known = 0 // TODO
	}
	if i := firstDifference(got, want); i < len(got) || i < known {
		explain("main", got, want)
	}
	for i, h := range gotHandlers {
		if i >= len(wantHandlers) {
			t.Fatalf("handler too many")
		}
		if k := firstDifference(h, wantHandlers[i]); k < len(h) || i < len(gotHandlers)-1 && k < len(wantHandlers[i]) {
			explain("handler", h, wantHandlers[i])
		}
	}
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

// split takes the activations of signal handlers, by the events with which they begin, out of a stream.
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
