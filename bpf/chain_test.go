//go:build linux && cgo

package bpf_test

import (
	"slices"
	"testing"

	"wpptrace/bpf"
	"wpptrace/bpf/usermode"
	"wpptrace/bpf/wire"
)

func TestFirstEventSendsItsCaller(t *testing.T) {
	for _, c := range []struct {
		name    string
		address uint64
		want    wire.Event
	}{
		{"inside", base + 0x2000, wire.MakeCaller(wire.Inside, 0x2000)},
		{"inside, no call of the plan", base + 0x3000, wire.MakeCaller(wire.Inside, 0x3000)},
		{"outside", outside, wire.MakeCaller(wire.Outside, 0)},
		{"just behind the image", base + size, wire.MakeCaller(wire.Outside, 0)},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, false)
			r.returns(stack, c.address)
			r.hit(first, stack)
			r.expect(t, c.want, wire.MakeHit(first, 0, stack))
		})
	}
}

func TestChainEndsAtTheFirstCallerWithAnEvent(t *testing.T) {
	r := newRig(t, false)
	r.returns(stack, base+0x1000)
	r.returns(stack+32, base+0x1000)
	r.returns(stack+64, base+0x2000)
	r.returns(stack+112, outside)
	r.hit(first, stack)
	r.expect(t, wire.MakeCaller(wire.Inside, 0x1000), wire.MakeCaller(wire.Inside, 0x1000),
		wire.MakeCaller(wire.Inside, 0x2000), wire.MakeHit(first, 0, stack))
}

func TestChainIsSentOnce(t *testing.T) {
	from, event := wire.MakeCaller(wire.Inside, 0x2000), wire.MakeHit(first, 0, stack)
	r := newRig(t, false)
	r.returns(stack, base+0x2000)
	r.hit(first, stack)
	r.hit(jump, stack)
	r.hit(first, stack)
	r.expect(t, from, event, wire.MakeHit(jump, 0, stack), event)
}

func TestChainIsSentAnew(t *testing.T) {
	const up, in = stack + 256, stack - 1<<32
	event := wire.MakeHit(first, 0, stack)
	inner := wire.MakeCaller(wire.Inside, 0x2000)
	for _, c := range []struct {
		name string
		then func(r *rig)
		want []wire.Event
	}{
		{"from another caller", func(r *rig) { r.returns(stack, outside) },
			[]wire.Event{wire.MakeCaller(wire.Outside, 0), event}},
		{"after an event further out", func(r *rig) { r.hit(plain, up) },
			[]wire.Event{wire.MakeHit(plain, 0, up), inner, event}},
		{"after an event of what a handler on a higher stack had interrupted",
			func(r *rig) { r.hit(plain, in) }, []wire.Event{wire.MakeHit(plain, 0, in), inner,
				event}},
		{"for another routine", func(r *rig) { sites[first].Routine = 2 },
			[]wire.Event{inner, event}},
	} {
		t.Run(c.name, func(t *testing.T) {
			defer func() { sites[first].Routine = 1 }()
			r := newRig(t, false)
			r.returns(stack, base+0x2000)
			r.hit(first, stack)
			c.then(r)
			r.hit(first, stack)
			r.expect(t, append([]wire.Event{inner, event}, c.want...)...)
		})
	}
}

// TestActivationThatGoesOn: the callers of an activation are not looked up where the event before
// says that no other can have begun.
func TestActivationThatGoesOn(t *testing.T) {
	const up = stack + 256
	taken := flags(0x40)
	inner, outer := wire.MakeCaller(wire.Inside, 0x2000), wire.MakeCaller(wire.Outside, 0)
	on, over := wire.MakeHit(looping, 1, stack), wire.MakeHit(looping, 0, stack)
	for _, c := range []struct {
		name string
		run  func(r *rig)
		want []wire.Event
	}{
		{"goes on",
			func(r *rig) {
				r.hit(looping, stack, taken)
				r.returns(stack, outside)
				r.hit(looping, stack)
			}, []wire.Event{inner, on, over}},
		{"may have ended",
			func(r *rig) {
				r.hit(looping, stack)
				r.returns(stack, outside)
				r.hit(looping, stack)
			}, []wire.Event{inner, over, outer, over}},
		{"interrupted by an event further out",
			func(r *rig) { r.hit(looping, stack, taken); r.hit(plain, up); r.hit(looping, stack) },
			[]wire.Event{inner, on, wire.MakeHit(plain, 0, up), inner, over}},
		{"another on the same alternate stack", func(r *rig) {
			r.returns(up, outside)
			r.hit(looping, up)
			r.hit(staying, stack)
			r.returns(up, base+0x2000)
			r.hit(looping, up)
		}, []wire.Event{outer, wire.MakeHit(looping, 0, up), wire.MakeHit(staying, 0, stack), inner,
			wire.MakeHit(looping, 0, up)}},
		{"interrupted by another activation", func(r *rig) {
			r.hit(looping, stack, taken)
			r.returns(up, outside)
			r.hit(looping, up, taken)
			r.hit(looping, stack)
		}, []wire.Event{inner, on, outer, wire.MakeHit(looping, 1, up), inner, over}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, false)
			r.returns(stack, base+0x2000)
			c.run(r)
			r.expect(t, c.want...)
		})
	}
}

// TestCallersThatAreKnown (rules 14 and 15): return addresses that are not read need not be there.
func TestCallersThatAreKnown(t *testing.T) {
	const in = stack - 48
	taken := flags(0x40)
	inner, outer := wire.MakeCaller(wire.Inside, 0x2000), wire.MakeCaller(wire.Outside, 0)
	begins, called := wire.MakeHit(calling, 1, stack), wire.MakeHit(first, 0, in)
	handler := append(registers(), wire.MakeInterrupt(0x1234))
	for _, c := range []struct {
		name string
		run  func(r *rig)
		want []wire.Event
	}{
		{"the only one", func(r *rig) { r.hit(known, in); r.hit(known, in) },
			[]wire.Event{inner, wire.MakeHit(known, 0, in), wire.MakeRepeat(1)}},
		{"the only one, elsewhere", func(r *rig) { r.hit(known, in); r.hit(known, in-64) },
			[]wire.Event{inner, wire.MakeHit(known, 0, in), inner,
				wire.MakeHit(known, 0, in-64)}},
		{"the only one, and the caller's",
			func(r *rig) { r.returns(in+32, outside); r.hit(followed, in) },
			[]wire.Event{wire.MakeCaller(wire.Inside, 0x1000), outer,
				wire.MakeHit(followed, 0, in)}},
		{"the next", func(r *rig) { r.hit(calling, stack, taken); r.hit(first, in) },
			[]wire.Event{begins, inner, called}},
		{"not after that outcome",
			func(r *rig) { r.returns(in, outside); r.hit(calling, stack); r.hit(first, in) },
			[]wire.Event{wire.MakeHit(calling, 0, stack), outer, called}},
		{"not further in",
			func(r *rig) {
				r.returns(in-8, outside)
				r.hit(calling, stack, taken)
				r.hit(first, in-8)
			},
			[]wire.Event{begins, outer, wire.MakeHit(first, 0, in-8)}},
		{"not after another event", func(r *rig) {
			r.returns(in, outside)
			r.hit(calling, stack, taken)
			r.hit(plain, stack)
			r.hit(first, in)
		}, []wire.Event{begins, wire.MakeHit(plain, 0, stack), outer, called}},
		{"not where a signal's handler has come", func(r *rig) {
			r.returns(in, outside)
			r.hit(calling, stack, taken)
			r.Signal(r.thread, base+0x1234, &interrupted, 10, 0)
			r.hit(first, in)
		}, slices.Concat([]wire.Event{begins}, handler, []wire.Event{outer, called})},
		{"not where one has come in external code", func(r *rig) {
			r.returns(in, outside)
			r.hit(calling, stack, taken)
			r.Signal(r.thread, outside, &interrupted, 10, 0)
			r.hit(first, in)
		}, []wire.Event{begins, outer, called}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, false)
			c.run(r)
			r.expect(t, c.want...)
		})
	}
}

func TestChainThatCannotBeRead(t *testing.T) {
	r := newRig(t, false)
	r.hit(first, stack)
	r.expect(t, wire.MakeCaller(wire.Outside, 0), wire.MakeHit(first, 0, stack))
	if r.Metrics[bpf.TracerMetricMETRIC_UNREADABLE] == 0 {
		t.Error("the unreadable return address was not counted")
	}
}

func TestEndlessChain(t *testing.T) {
	r := newRig(t, false)
	for i := range uint64(2 * usermode.ChainMax) {
		r.returns(stack+32*i, base+0x1000)
	}
	r.hit(first, stack)
	if n := len(r.events(t)); n != usermode.ChainMax+1 {
		t.Errorf("%d events, want %d callers and the witness", n, usermode.ChainMax)
	}
	if r.Metrics[bpf.TracerMetricMETRIC_LONG_CHAIN] != 1 {
		t.Error("the long chain was not counted")
	}
}

func TestHandlerReportsWhatItInterrupted(t *testing.T) {
	const movRAX, movEAX, rsp = 0x0f0000000fc0c748, 0x050f0000000fb8, 4
	for _, c := range []struct {
		name     string
		code, ip uint64
		onStack  uint64
		want     wire.Event
	}{
		{"inside", movRAX, base + 0x777, 0, wire.MakeCaller(wire.Handler, 0x777)},
		{"inside, other restorer", movEAX, base + 0x777, base + 0x2000,
			wire.MakeCaller(wire.Handler, 0x777)},
		{"outside", movRAX, outside, outside, wire.MakeCaller(wire.HandlerOutside, 0)},
		{"outside, where the stack has no call's return address", movRAX, outside, base + 0x3000,
			wire.MakeCaller(wire.HandlerOutside, 0)},
		{"outside, called by the image", movRAX, outside, base + 0x2000,
			wire.MakeCaller(wire.ReturnsToImage, 0x2000)},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, false)
			r.Memory.Set(trap, c.code)
			r.returns(stack, trap)
			r.Memory.SetSignalFrame(stack, c.ip, &interrupted)
			r.Memory.Set(interrupted.General[rsp], c.onStack)
			r.hit(first, stack)
			want := []wire.Event{c.want, wire.MakeHit(first, 0, stack)}
			if c.want.Origin() != wire.HandlerOutside {
				want = append(registers(), want...)
			}
			r.expect(t, want...)
		})
	}
}

// interrupted is what registers hold where handlers come, 100 times their numbers.
var interrupted = func() (r usermode.Registers) {
	for i := range r.General {
		r.General[i] = 100 * uint64(i)
	}
	return r
}()

// registers are the events of these.
func registers() (events []wire.Event) {
	for _, number := range wire.Registers {
		events = append(events, wire.MakeRegister(100*uint64(number)))
	}
	return events
}

// TestHandlerAgainInAnotherCall: the same handler on the same stack, with the same registers, is
// another activation where it has interrupted another call of code in no image. It was taken for
// the one before.
func TestHandlerAgainInAnotherCall(t *testing.T) {
	r := newRig(t, false)
	r.Memory.Set(trap, 0x0f0000000fc0c748)
	r.returns(stack, trap)
	r.Memory.SetSignalFrame(stack, outside, &interrupted)
	var want []wire.Event
	for _, ra := range []uint64{0x1000, 0x1000, 0x2000} {
		// what restores is not known before the first
		r.Memory.Set(interrupted.General[4], base+ra)
		r.hit(first, stack)
		want = append(append(want, registers()...), wire.MakeCaller(wire.ReturnsToImage, ra),
			wire.MakeHit(first, 0, stack))
	}
	r.expect(t, want...)
}

// TestHandlerAgainElsewhere: the same handler on the same stack, which interrupted another
// instruction, is another activation.
func TestHandlerAgainElsewhere(t *testing.T) {
	r := newRig(t, false)
	r.Memory.Set(trap, 0x0f0000000fc0c748)
	r.returns(stack, trap)
	var want []wire.Event
	for _, ip := range []uint64{0x100, 0x200} {
		r.Memory.SetSignalFrame(stack, base+ip, &interrupted)
		r.hit(first, stack)
		want = append(append(want, registers()...), wire.MakeCaller(wire.Handler, ip),
			wire.MakeHit(first, 0, stack))
	}
	r.expect(t, want...)
}

func TestResyncSendsAllCallers(t *testing.T) {
	r := newRig(t, true)
	r.returns(stack, base+0x2000)
	r.returns(stack+48, base+0x1000)
	r.returns(stack+80, outside)
	r.hit(plain, stack)
	r.hit(plain, stack+8)
	r.expect(t, wire.MakeResync(wire.Inside, 0x2000), wire.MakeResync(wire.Inside, 0x1000),
		wire.MakeResync(wire.Outside, 0),
		wire.MakeHit(plain, 0, stack), wire.MakeHit(plain, 0, stack+8))
}

func TestResyncOfAStackThatCannotBeRead(t *testing.T) {
	r := newRig(t, true)
	r.returns(stack, base+0x1000)
	r.hit(plain, stack)
	r.expect(t, wire.MakeResync(wire.Inside, 0x1000), wire.MakeResync(wire.Unreadable, 0),
		wire.MakeHit(plain, 0, stack))
}

func TestResyncOfAnEndlessStack(t *testing.T) {
	r := newRig(t, true)
	for i := range uint64(usermode.ResyncMax) {
		r.returns(stack+32*i, base+0x1000)
	}
	r.hit(plain, stack)
	events := r.events(t)
	if len(events) != usermode.ResyncMax+1 {
		t.Fatalf("%d events, want %d callers and the witness", len(events), usermode.ResyncMax)
	}
	if got, want := events[len(events)-2], wire.MakeResync(wire.Truncated, 0); got != want {
		t.Errorf("the chain ends with %v, want %v", got, want)
	}
}
