//go:build linux && cgo

package decoder_test

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"wpptrace/bpf/wire"
	"wpptrace/compress/ops"
	"wpptrace/decoder"
	"wpptrace/loader/cfg"
	"wpptrace/loader/plan"
	"wpptrace/loader/plan/planner"
)

// small has a loop, a switch, a recursion, an indirect call and calls of external code.
const small = `
#include <stdlib.h>
#include <setjmp.h>
#include <string.h>
volatile int sink;
__attribute__((noinline)) static int pick(int n)
{
	switch (n & 7) {
	case 0: return sink;
	case 1: sink = 3; return 5;
	case 2: return n * sink;
	case 3: return 9;
	case 4: return sink - n;
	case 5: sink++; return 1;
	}
	return 2;
}
__attribute__((noinline)) int depth(int n) { return n ? depth(n - 1) + pick(n) : 0; }
int (*volatile pointer)(int) = depth;
__attribute__((noinline)) int compare(const char *a, const char *b)
{
	int r = 2;
	if (*a)
		r = strcmp(a, b);
	return r;
}
__attribute__((noinline)) int sum(const unsigned char *p, const unsigned char *end)
{
	int s = 0;
	while (p != end)
		s += *p++;
	return s;
}
jmp_buf env;
__attribute__((noinline)) int guarded(const unsigned char *p, const unsigned char *end) {
	return setjmp(env) ? 1 : sum(p, end) + 1; }
int (*volatile summation)(const unsigned char *, const unsigned char *) = guarded;
int (*volatile comparison)(const char *, const char *) = compare;
int main(int argc, char **argv)
{
	for (int i = 0; i < argc; i++)
		sink += pointer(i) + rand();
	return pick(argc);
}`

var planSmall = sync.OnceValues(func() (*plan.Plan, error) {
	dir, err := os.MkdirTemp("", "events")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	in, out := filepath.Join(dir, "in.c"), filepath.Join(dir, "program")
	if err := os.WriteFile(in, []byte(small), 0o644); err != nil {
		return nil, err
	}
	if b, err := exec.Command("gcc", "-O1", "-o", out, in).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("gcc: %w: %s", err, b)
	}
	return makePlan(out, planner.Options{Complete: true})
})

func decodeSmall(t *testing.T) (*plan.Plan, *decoder.Decoder) {
	t.Helper()
	p, err := planSmall()
	if err != nil {
		t.Fatal(err)
	}
	d, err := decoder.New(p, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p, d
}

// A counter is a sink that counts what it is given.
type counter struct{ enters, leaves, paths, marks int }

func (c *counter) EnterRoutine(int, ops.Caller) { c.enters++ }
func (c *counter) LeaveRoutine()                { c.leaves++ }
func (c *counter) NewPath(int, uint64, uint64)  { c.paths++ }
func (c *counter) Mark(ops.Mark, uint64)        { c.marks++ }

// FuzzEvents: whatever events come, a thread neither panics nor hangs, and what it emits is bounded
// by the events and its plan.
func FuzzEvents(f *testing.F) {
	p, err := planSmall()
	if err != nil {
		f.Fatal(err)
	}
	const stack = 0x7ffc0000
	seed := func(events ...wire.Event) {
		var b []byte
		for _, w := range events {
			b = binary.LittleEndian.AppendUint64(b, uint64(w))
		}
		f.Add(b)
	}
	seed()
	seed(wire.MakeCaller(wire.Outside, 0), wire.MakeHit(0, 0, stack), wire.MakeRepeat(5),
		wire.MakeEnd(wire.Outside, 0))
	seed(wire.MakeResync(wire.Inside, p.Sites[0].Addr+5), wire.MakeResync(wire.Truncated, 0),
		wire.MakeHit(1, 1, stack))
	seed(wire.MakeCaptured(1<<60-1), wire.MakeHit(len(p.Sites)-1, 0, stack), wire.MakeCaptured(3),
		wire.MakeRepeat(2))
	seed(wire.MakeHit(wire.MaxSites-1, 1, 0), wire.MakeCaller(wire.Handler, p.Sites[1].Addr),
		wire.MakeHit(0, 0, stack-64))
	reads := slices.IndexFunc(p.Sites,
		func(s plan.Site) bool { return s.Capture != nil && s.Capture.Kind == plan.LoopRegisters })
	if reads < 0 {
		f.Fatal("no event carries a loop's rounds")
	}
	outside, rounds := wire.MakeCaller(wire.Outside, 0), wire.MakeCaptured(1<<39)
	seed(outside, rounds, wire.MakeHit(reads, 0, stack), outside, rounds,
		wire.MakeHit(reads, 1, stack), wire.MakeRepeat(9), outside, wire.MakeHit(0, 0, stack))
	blocks := 0
	for _, r := range p.Routines {
		blocks += len(r.Blocks)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		const most = 4096
		hits := 0
		d, err := decoder.New(p, nil)
		if err != nil {
			t.Fatal(err)
		}
		var c counter
		thread := d.Thread(&c, true)
		for n := 0; len(data) >= 8 && n < most; n++ {
			w := wire.Event(binary.LittleEndian.Uint64(data))
			data = data[8:]
			if w.Kind() == wire.Repeat && w.Value() > most {
				// it stands for as many hits, which take their time
				w = wire.MakeRepeat(w.Value() % most)
			}
			if hits++; w.Kind() == wire.Repeat {
				hits += int(w.Value())
			}
			if w.Kind() == wire.Hit { // most sites of a random event are not in the plan
				w = wire.MakeHit(w.Site()%(len(p.Sites)+1), w.Outcome(), w.CFA())
			}
			thread.Take(w)
		}
		thread.Gap(3)
		thread.Close()
		if c.leaves > c.enters+c.marks*most || c.paths > 2*hits*blocks {
			t.Errorf("%+v", c)
		}
	})
}

// TestEventWithoutItsValue: a loop's rounds are what was captured for the event, not for an earlier
// one.
func TestEventWithoutItsValue(t *testing.T) {
	p, d := decodeSmall(t)
	reads := slices.IndexFunc(p.Sites,
		func(s plan.Site) bool { return s.Capture != nil && s.Capture.Kind == plan.LoopRegisters })
	const stack = 0x7ffc0000
	rec := &recorder{decoder: d, plan: p}
	thread := d.Thread(rec, true)
	for i, captured := range []bool{true, false} {
		thread.Take(wire.MakeCaller(wire.Outside, 0))
		if captured {
			thread.Take(wire.MakeCaptured(5))
		}
		thread.Take(wire.MakeHit(reads, 0, stack))
		thread.Take(wire.MakeCaller(wire.Outside, 0))
		thread.Take(wire.MakeHit(firstSite(p, "main"), 0, stack))
		if a, _ := d.Anomalies(); a != uint64(i) {
			t.Errorf("%d anomalies, value captured: %v", a, captured)
		}
	}
}

// TestJumpOutBySomethingUnseen: where nothing that is known can have jumped, an activation has not
// come to its end before, nor its loop.
func TestJumpOutBySomethingUnseen(t *testing.T) {
	p, d := decodeSmall(t)
	const stack = 0x7ffc0000
	reads := slices.IndexFunc(p.Sites,
		func(s plan.Site) bool { return s.Capture != nil && s.Capture.Kind == plan.LoopRegisters })
	begin := firstSite(p, "guarded")
	r := p.Routines[p.Sites[begin].Routine]
	call := slices.IndexFunc(r.Blocks, func(b cfg.Block) bool {
		return b.End == cfg.Call && b.Target == p.Routines[p.Sites[reads].Routine].Addr
	})
	again := slices.IndexFunc(p.Sites, func(s plan.Site) bool {
		return s.Routine == r.ID && slices.Contains(r.Blocks[s.Block].Succ, call)
	})
	toCall := slices.Index(r.Blocks[p.Sites[again].Block].Succ, call)
	rec := &recorder{decoder: d, plan: p}
	thread := d.Thread(rec, true)
	events := []wire.Event{wire.MakeCaller(wire.Outside, 0)}
	if begin != again {
		events = append(events, wire.MakeHit(begin, 0, stack))
	}
	events = append(events, wire.MakeHit(again, 1-toCall, stack),
		wire.MakeCaller(wire.Inside, r.Blocks[call].Hi+r.Offset()), wire.MakeCaptured(1000),
		wire.MakeHit(reads, 0, stack-uint64(r.Blocks[call].Depth)),
		wire.MakeHit(again, toCall, stack))
	for _, w := range events {
		thread.Take(w)
	}
	if a, m := d.Anomalies(); a != 0 || m != 0 || rec.err != nil {
		t.Errorf("%d anomalies, %d ambiguities, %v", a, m, rec.err)
	}
	if len(rec.events) > 100 || !slices.ContainsFunc(rec.marks,
		func(m mark) bool { return m.kind == ops.Cut }) {
		t.Errorf("%d events, marks %v", len(rec.events), rec.marks)
	}
}

// TestPathOfNoNumber: a number that names no path is an error.
func TestPathOfNoNumber(t *testing.T) {
	p, d := decodeSmall(t)
	for id, r := range p.Routines {
		if !r.Traced() {
			continue
		}
		if _, err := d.Path(id, d.Paths(id)); err == nil {
			t.Errorf("%s has %d paths, and one with that number", r.Name, d.Paths(id))
		}
	}
}

// TestHandlerInPlaceOfOneThatEndedUnseen: a handler ends with nothing said, another comes
// elsewhere, and in it one in the first one's place. What ended is not the second's caller, which
// goes on after the third.
func TestHandlerInPlaceOfOneThatEndedUnseen(t *testing.T) {
	p, d := decodeSmall(t)
	const stack, other, further = 0x7ffc0000, 0x7ff00000, 0x7fe00000
	main, depth := firstSite(p, "main"), firstSite(p, "depth")
	r := p.Routines[p.Sites[depth].Routine]
	call := slices.IndexFunc(r.Blocks,
		func(b cfg.Block) bool { return b.End == cfg.Call && b.Target == r.Addr })
	// the outcome 1 leads to the first
	home := slices.Index(r.Blocks[p.Sites[depth].Block].Succ, call)
	compare := firstSite(p, "compare")
	s := &p.Sites[compare]
	toCall := slices.IndexFunc(p.Routines[s.Routine].Blocks[s.Block].Succ,
		func(b int) bool { return p.Routines[s.Routine].Blocks[b].End == cfg.Call })

	for _, c := range []struct {
		name  string
		first wire.Event
		from  wire.Event // of the second
	}{
		{"nothing known leads to the second", wire.MakeHit(depth, home, other),
			wire.MakeCaller(wire.Handler, 1)},
		{"the first was in its call or had returned", wire.MakeHit(compare, 1-toCall, other),
			wire.MakeCaller(wire.HandlerOutside, 0)},
	} {
		t.Run(c.name, func(t *testing.T) {
			before, _ := d.Anomalies()
			rec := &recorder{decoder: d, plan: p}
			thread := d.Thread(rec, true)
			for _, w := range []wire.Event{
				wire.MakeCaller(wire.Outside, 0), wire.MakeHit(main, 0, stack),
				wire.MakeCaller(wire.Handler, 1), c.first,
				c.from, wire.MakeHit(depth, 1-home, further),
				wire.MakeCaller(wire.Handler, 1), wire.MakeHit(depth, home, other),
				wire.MakeCaller(wire.Inside, r.Blocks[call].Hi+r.Offset()), wire.MakeHit(depth,
					home, further-uint64(r.Blocks[call].Depth)),
			} {
				thread.Take(w)
			}
			if a, m := d.Anomalies(); a != before || m != 0 || rec.err != nil {
				t.Errorf("%d anomalies, %d ambiguities, %v", a-before, m, rec.err)
			}
			for _, m := range rec.marks {
				if m.kind == ops.Resume {
					t.Errorf("the second handler was taken for ended: marks %v", rec.marks)
				}
			}
		})
	}
}

// TestHandlersWithoutEndAreBounded: of handlers in turns at two places, which nothing between them
// says have ended, few are kept.
func TestHandlersWithoutEndAreBounded(t *testing.T) {
	p, d := decodeSmall(t)
	var c counter
	thread := d.Thread(&c, true)
	thread.Take(wire.MakeCaller(wire.Outside, 0))
	thread.Take(wire.MakeHit(firstSite(p, "main"), 0, 0x7ffc0000))
	const handlers, most = 10_000, 200
	for i := range handlers {
		thread.Take(wire.MakeCaller(wire.Handler, 1))
		thread.Take(wire.MakeHit(firstSite(p, "depth"), 0, 0x7fe00000+uint64(i%2)<<20))
	}
	if open := c.enters - c.leaves; c.enters < handlers || open > most {
		t.Errorf("%d activations, %d of them open", c.enters, open)
	}
}

// TestEventsSayWhatWasHit: who counts hits, and single steps, need not look into events.
func TestEventsSayWhatWasHit(t *testing.T) {
	p, d := decodeSmall(t)
	const stack = 0x7ffc0000
	site := firstSite(p, "main")
	hit := wire.MakeHit(site, 0, stack)
	thread := d.Thread(&counter{}, true)
	for _, c := range []struct {
		name  string
		event wire.Event
		want  decoder.Hits
	}{
		{"what goes with a hit", wire.MakeCaller(wire.Outside, 0), decoder.Hits{}},
		{"a hit", hit, decoder.Hits{Count: 1, Site: site, Stepped: p.Sites[site].Stepped}},
		{"no site", wire.MakeHit(len(p.Sites), 0, stack),
			decoder.Hits{Count: 1, Site: len(p.Sites)}},
		{"repeats", wire.MakeRepeat(3), decoder.Hits{Count: 3, Site: len(p.Sites)}},
		{"the end", wire.MakeEnd(wire.Outside, 0), decoder.Hits{}},
	} {
		if thread.Ended() {
			t.Errorf("ended before %s", c.name)
		}
		if got := thread.Take(c.event); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
	if !thread.Ended() {
		t.Error("not ended behind the end")
	}
}

// firstSite is the first site that may be the first of a routine's activations.
func firstSite(p *plan.Plan, name string) int {
	return slices.IndexFunc(p.Sites,
		func(s plan.Site) bool { return s.First && p.Routines[s.Routine].Symbol == name })
}

func ExampleDecoder() {
	p, err := planSmall()
	if err != nil {
		fmt.Println(err)
		return
	}
	d, err := decoder.New(p, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	var c counter
	t := d.Thread(&c, true)
	for i := range p.Sites { // main is called from outside and comes to its first hit
		s := &p.Sites[i]
		if r := p.Routines[s.Routine]; r.Symbol == "main" && s.First {
			t.Take(wire.MakeCaller(wire.Outside, 0))
			t.Take(wire.MakeHit(i, 0, 0x7ffc1000))
			break
		}
	}
	t.Close()
	fmt.Println("activations:", c.enters)
	// Output: activations: 1
}
