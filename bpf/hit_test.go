//go:build linux && cgo

package bpf_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"wpptrace/bpf"
	"wpptrace/bpf/usermode"
	"wpptrace/bpf/wire"
)

// The simulated process: where its image and stack are, and its return addresses.
const (
	base    = 0x400000
	size    = 0x10000
	stack   = 0x7ffc00001000
	outside = 0x7f0000000010
	trap    = 0x7f0000000080 // where signal handlers return to
)

// The sites of the simulated plan. All frames are found by rsp + 16.
const (
	plain    = iota // no decision, never first
	first           // may be first
	jump            // jle
	table           // ja that checks the bound of the switch on esi, which is not taken
	pointer         // an indirect jump: through [rdi + rcx*8 + 0x20]
	global          // switch on a byte of the image, at 0x5000
	framed          // CFA by rbp
	slotted         // CFA in the frame of rbp
	valued          // jle that captures four bytes in the frame of rbp
	looping         // jle that may be first, and comes again in the same activation if it is taken
	staying         // never first, and followed by another event of its activation
	known           // may be first, in a routine that the call at 0x2000 alone enters
	followed        // the same, entered by the call at 0x1000 alone
	calling         // jle that the call at 0x2000 follows if it is taken
)

func site(s bpf.TracerSite) bpf.TracerSite {
	if s.Base == 0 {
		s.Base = 4
	}
	if s.Offset == 0 {
		s.Offset = 16
	}
	if s.Flags&(usermode.SiteCapture|usermode.SiteValue) == 0 {
		s.CaptureReg = usermode.NoReg
	}
	if s.CaptureIndex == 0 {
		s.CaptureIndex = usermode.NoReg
	}
	return s
}

var sites = []bpf.TracerSite{
	plain: site(bpf.TracerSite{Condition: usermode.ConditionNone}),
	first: site(bpf.TracerSite{Condition: usermode.ConditionNone, Flags: usermode.SiteFirst,
		Routine: 1}),
	jump: site(bpf.TracerSite{Condition: 14}),
	table: site(bpf.TracerSite{Condition: 7, Flags: usermode.SiteCapture, CaptureReg: 6,
		CaptureSize: 4}),
	pointer: site(bpf.TracerSite{Condition: usermode.ConditionNone,
		Flags: usermode.SiteCapture | usermode.SiteCaptureMemory |
			usermode.SiteCaptureTarget,
		CaptureReg:   7,
		CaptureIndex: 1, CaptureScale: 8, CaptureDisp: 0x20, CaptureSize: 8}),
	global: site(bpf.TracerSite{Condition: usermode.ConditionNone,
		Flags:      usermode.SiteCapture | usermode.SiteCaptureMemory | usermode.SiteCaptureRIP,
		CaptureReg: usermode.NoReg, CaptureDisp: 0x5000, CaptureSize: 1}),
	framed: site(bpf.TracerSite{Condition: usermode.ConditionNone, Base: 5, Offset: -8}),
	slotted: site(bpf.TracerSite{Condition: usermode.ConditionNone, Flags: usermode.SiteSlot,
		Base: 5, Offset: -24}),
	valued: site(bpf.TracerSite{Condition: 14,
		Flags:      usermode.SiteValue | usermode.SiteCaptureMemory,
		CaptureReg: 5, CaptureDisp: -20, CaptureSize: 4}),
	looping: site(bpf.TracerSite{Condition: 14, Flags: usermode.SiteFirst, Routine: 1,
		Stays: 1 << 1}),
	staying: site(bpf.TracerSite{Condition: usermode.ConditionNone, Stays: 1}),
	known: site(bpf.TracerSite{Condition: usermode.ConditionNone, Flags: usermode.SiteFirst,
		Routine: 3, Caller: bpf.OnlyCaller(0x2000, true)}),
	followed: site(bpf.TracerSite{Condition: usermode.ConditionNone, Flags: usermode.SiteFirst,
		Routine: 4, Caller: bpf.OnlyCaller(0x1000, false)}),
	calling: site(bpf.TracerSite{Condition: 14, Next: [2]uint64{1: bpf.NextCall(0x2000, 48)}}),
}

// calls: the one at 0x1000 is made by a caller that may have been without events, the one at 0x2000
// by one that has had an event.
var calls = map[uint64]bpf.TracerCall{
	0x1000: bpf.MakeCall(0x1000, 32, false, 0), 0x2000: bpf.MakeCall(0x2000, 48, true, 0),
}

// A rig is a machine with one thread.
type rig struct {
	*usermode.Machine
	thread *usermode.Thread
}

func newRig(t interface{ Cleanup(func()) }, midRun bool) *rig {
	r := &rig{usermode.New(sites, calls, base, size), usermode.NewThread(42, 7, midRun)}
	t.Cleanup(r.thread.Free)
	return r
}

// hit hits a site in the activation at cfa, with changes to the registers.
func (r *rig) hit(site uint32, cfa uint64, change ...func(*usermode.Registers)) {
	var regs usermode.Registers
	regs.General[4] = cfa - 16
	for _, c := range change {
		c(&regs)
	}
	r.Hit(r.thread, site, &regs)
}

// returns sets the return address of the activation at cfa.
func (r *rig) returns(cfa, address uint64) { r.Memory.Set(cfa-8, address) }

// events drains the thread and returns all events of all records.
func (r *rig) events(t interface{ Fatal(...any) }) (list []wire.Event) {
	r.Drain(r.thread)
	for _, record := range r.Records {
		b, err := wire.ParseBatch(record)
		if err != nil {
			t.Fatal(err)
		}
		for i := range b.Len() {
			list = append(list, b.Event(i))
		}
	}
	return list
}

func (r *rig) expect(t *testing.T, want ...wire.Event) {
	t.Helper()
	if diff := cmp.Diff(printed(want), printed(r.events(t))); diff != "" {
		t.Errorf("events differ (-want +got):\n%s", diff)
	}
}

func printed(events []wire.Event) (list []string) {
	for _, w := range events {
		list = append(list, w.String())
	}
	return list
}

func register(number int, value uint64) func(*usermode.Registers) {
	return func(r *usermode.Registers) { r.General[number] = value }
}

func flags(value uint64) func(*usermode.Registers) {
	return func(r *usermode.Registers) { r.Flags = value }
}

func TestOutcomeIsTheConditionOfTheJump(t *testing.T) {
	const zf = 1 << 6
	r := newRig(t, false)
	r.hit(jump, stack, flags(zf))
	r.hit(jump, stack)
	r.hit(plain, stack, flags(^uint64(0)))
	r.expect(t, wire.MakeHit(jump, 1, stack), wire.MakeHit(jump, 0, stack),
		wire.MakeHit(plain, 0, stack))
}

func TestFrameByRBP(t *testing.T) {
	r := newRig(t, false)
	r.hit(framed, 0, register(5, stack+8))
	r.expect(t, wire.MakeHit(framed, 0, stack))
}

func TestFrameInASlot(t *testing.T) {
	r := newRig(t, false)
	r.Memory.Set(stack-0x100-24, stack)
	r.hit(slotted, 0, register(5, stack-0x100))
	r.expect(t, wire.MakeHit(slotted, 0, stack))
}

// TestFrameInASlotThatCannotBeRead: the hit is lost between the event before it and the event
// behind it, which stands alone.
func TestFrameInASlotThatCannotBeRead(t *testing.T) { loses(t, slotted) }

// TestValueThatCannotBeRead: without it the way from the event to the next would not be known.
func TestValueThatCannotBeRead(t *testing.T) { loses(t, valued) }

// TestCaseThatCannotBeRead: there is no value that stands for none, for it could be one of a case.
func TestCaseThatCannotBeRead(t *testing.T) { loses(t, pointer) }

func loses(t *testing.T, site uint32) {
	r := newRig(t, false)
	r.returns(stack, outside)
	r.hit(plain, stack)
	r.hit(plain, stack)
	r.hit(site, stack, register(5, stack-0x100), register(7, stack-0x100))
	r.hit(plain, stack)
	r.expect(t, wire.MakeHit(plain, 0, stack), wire.MakeRepeat(1), wire.MakeResync(wire.Outside, 0),
		wire.MakeHit(plain, 0, stack))
	if n := r.Metrics[bpf.TracerMetricMETRIC_DROPPED_HITS]; n != 1 {
		t.Errorf("%d hits counted of which something could not be read", n)
	}
	var hits, lost []uint64
	for _, record := range r.Records {
		b, err := wire.ParseBatch(record)
		if err != nil {
			t.Fatal(err)
		}
		hits, lost = append(hits, b.Hits), append(lost, b.Lost)
	}
	if diff := cmp.Diff([][]uint64{{2, 4}, {0, 1}}, [][]uint64{hits, lost}); diff != "" {
		t.Errorf("hits and losses of the batches differ (-want +got):\n%s", diff)
	}
	if l := r.Losses[42]; l.Hits != 3 || l.Lost != 1 ||
		r.Metrics[bpf.TracerMetricMETRIC_LOST_HITS] != 1 {
		t.Errorf("loss %+v, %d lost hits counted", l, r.Metrics[bpf.TracerMetricMETRIC_LOST_HITS])
	}
}

func TestRepeatsAreCounted(t *testing.T) {
	r := newRig(t, false)
	for range 1000 {
		r.hit(plain, stack)
	}
	r.hit(plain, stack+64)
	r.hit(plain, stack)
	r.expect(t, wire.MakeHit(plain, 0, stack), wire.MakeRepeat(999),
		wire.MakeHit(plain, 0, stack+64), wire.MakeHit(plain, 0, stack))
}

func TestRepeatNeedsTheSameCase(t *testing.T) {
	r := newRig(t, false)
	for _, v := range []uint64{3, 3, 4} {
		r.hit(table, stack, register(6, v), flags(1)) // CF: ja is not taken
	}
	r.expect(t, wire.MakeCaptured(3), wire.MakeHit(table, 0, stack), wire.MakeRepeat(1),
		wire.MakeCaptured(4), wire.MakeHit(table, 0, stack))
}

func TestCases(t *testing.T) {
	const below, above = 1, 0 // the carry flag: ja is not taken, taken
	for _, c := range []struct {
		name   string
		site   uint32
		memory map[uint64]uint64
		change []func(*usermode.Registers)
		want   []wire.Event
	}{
		{"the low bytes of a register", table, nil,
			[]func(*usermode.Registers){register(6, 0xdeadbeef00000005), flags(below)},
			[]wire.Event{wire.MakeCaptured(5), wire.MakeHit(table, 0, stack)}},
		{"none on the other side of the check", table, nil,
			[]func(*usermode.Registers){register(6, 5), flags(above)},
			[]wire.Event{wire.MakeHit(table, 1, stack)}},
		{"a target in memory by base, index and displacement", pointer,
			map[uint64]uint64{0x9000 + 8*3 + 0x20: base + 0x1234},
			[]func(*usermode.Registers){register(7, 0x9000), register(1, 3)},
			[]wire.Event{wire.MakeCaptured(0x1234), wire.MakeHit(pointer, 0, stack)}},
		{"a byte of the image", global, map[uint64]uint64{base + 0x5000: 0xffffffffffffff07}, nil,
			[]wire.Event{wire.MakeCaptured(7), wire.MakeHit(global, 0, stack)}},
		{"a value at the end of what can be read", valued,
			map[uint64]uint64{stack - 0x100 - 24: 0xdeadbeef00000000},
			[]func(*usermode.Registers){register(5, stack-0x100)},
			[]wire.Event{wire.MakeCaptured(0xdeadbeef), wire.MakeHit(valued, 0, stack)}},
		{"a value in the frame", valued,
			map[uint64]uint64{stack - 0x100 - 24: 0xdeadbeef00000000,
				stack - 0x100 - 16: 0xffffffffffffffff},
			[]func(*usermode.Registers){register(5, stack-0x100)},
			[]wire.Event{wire.MakeCaptured(0xdeadbeef), wire.MakeHit(valued, 0, stack)}},
		{"a value whatever the outcome", valued,
			map[uint64]uint64{stack - 0x100 - 24: 5 << 32, stack - 0x100 - 16: 0},
			[]func(*usermode.Registers){register(5, stack-0x100), flags(1 << 6)},
			[]wire.Event{wire.MakeCaptured(5), wire.MakeHit(valued, 1, stack)}},
		{"the low bits of what looks like none", pointer, map[uint64]uint64{0x20: base - 1},
			[]func(*usermode.Registers){register(7, 0), register(1, 0)},
			[]wire.Event{wire.MakeCaptured(1<<wire.ValueBits - 1),
				wire.MakeHit(pointer, 0, stack)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, false)
			for a, v := range c.memory {
				r.Memory.Set(a, v)
			}
			r.hit(c.site, stack, c.change...)
			r.expect(t, c.want...)
			if n := r.Metrics[bpf.TracerMetricMETRIC_DROPPED_HITS]; n != 0 {
				t.Errorf("%d hits counted of which something could not be read", n)
			}
		})
	}
}

// TestCaseZeroIsSent: a switch's case 0 is a case like any other.
func TestCaseZeroIsSent(t *testing.T) {
	r := newRig(t, false)
	r.hit(table, stack, register(6, 0), flags(1))
	r.expect(t, wire.MakeCaptured(0), wire.MakeHit(table, 0, stack))
}
