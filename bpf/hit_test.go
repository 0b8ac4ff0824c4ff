//go:build linux && cgo

package bpf_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

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
	plain   = iota // no decision, never first
	first          // may be first
	jump           // jle
	table          // ja that checks the bound of the switch on esi, which is not taken
	pointer        // an indirect jump: through [rdi + rcx*8 + 0x20]
	global         // switch on a byte of the image, at 0x5000
	framed         // CFA by rbp
	slotted        // CFA in the frame of rbp
	valued         // jle that tells four bytes in the frame of rbp
	looping        // jle that may be first, and comes again in the same activation if it is taken
	staying        // never first, and followed by another word of its activation
)

func site(s bpf.TracerSite) bpf.TracerSite {
	if s.Base == 0 {
		s.Base = 4
	}
	if s.Offset == 0 {
		s.Offset = 16
	}
	if s.Flags&(usermode.SiteCase|usermode.SiteValue) == 0 {
		s.CaseReg = usermode.NoReg
	}
	if s.CaseIndex == 0 {
		s.CaseIndex = usermode.NoReg
	}
	return s
}

var sites = []bpf.TracerSite{
	plain:   site(bpf.TracerSite{Condition: usermode.ConditionNone}),
	first:   site(bpf.TracerSite{Condition: usermode.ConditionNone, Flags: usermode.SiteFirst, Routine: 1}),
	jump:    site(bpf.TracerSite{Condition: 14}),
	table:   site(bpf.TracerSite{Condition: 7, Flags: usermode.SiteCase, CaseReg: 6, CaseSize: 4}),
	pointer: site(bpf.TracerSite{Condition: usermode.ConditionNone, Flags: usermode.SiteCase | usermode.SiteCaseMemory | usermode.SiteCaseTarget, CaseReg: 7, CaseIndex: 1, CaseScale: 8, CaseDisp: 0x20, CaseSize: 8}),
	global:  site(bpf.TracerSite{Condition: usermode.ConditionNone, Flags: usermode.SiteCase | usermode.SiteCaseMemory | usermode.SiteCaseRIP, CaseReg: usermode.NoReg, CaseDisp: 0x5000, CaseSize: 1}),
	framed:  site(bpf.TracerSite{Condition: usermode.ConditionNone, Base: 5, Offset: -8}),
	slotted: site(bpf.TracerSite{Condition: usermode.ConditionNone, Flags: usermode.SiteSlot, Base: 5, Offset: -24}),
	valued:  site(bpf.TracerSite{Condition: 14, Flags: usermode.SiteValue | usermode.SiteCaseMemory, CaseReg: 5, CaseDisp: -20, CaseSize: 4}),
	looping: site(bpf.TracerSite{Condition: 14, Flags: usermode.SiteFirst, Routine: 1, Stays: 1 << 1}),
	staying: site(bpf.TracerSite{Condition: usermode.ConditionNone, Stays: 1}),
}

// calls: the one at 0x1000 is made by a caller that may have been silent, the one at 0x2000 by one that has spoken.
var calls = map[uint64]bpf.TracerCall{0x1000: {Depth: 32}, 0x2000: {Depth: 48, Spoken: 1}}

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

// words drains the thread and returns all words of all records.
func (r *rig) words(t interface{ Fatal(...any) }) (list []wire.Word) {
	r.Drain(r.thread)
	for _, record := range r.Records {
		b, err := wire.ParseBatch(record)
		if err != nil {
			t.Fatal(err)
		}
		for i := range b.Len() {
			list = append(list, b.Word(i))
		}
	}
	return list
}

func (r *rig) expect(t *testing.T, want ...wire.Word) {
	t.Helper()
	if diff := cmp.Diff(printed(want), printed(r.words(t))); diff != "" {
		t.Errorf("words differ (-want +got):\n%s", diff)
	}
}

func printed(words []wire.Word) (list []string) {
	for _, w := range words {
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
	r.expect(t, wire.MakeWitness(jump, 1, stack), wire.MakeWitness(jump, 0, stack), wire.MakeWitness(plain, 0, stack))
}

func TestFrameByRBP(t *testing.T) {
	r := newRig(t, false)
	r.hit(framed, 0, register(5, stack+8))
	r.expect(t, wire.MakeWitness(framed, 0, stack))
}

func TestFrameInASlot(t *testing.T) {
	r := newRig(t, false)
	r.Memory.Set(stack-0x100-24, stack)
	r.hit(slotted, 0, register(5, stack-0x100))
	r.expect(t, wire.MakeWitness(slotted, 0, stack))
}

// TestFrameInASlotThatCannotBeRead: the hit is lost between the word before it and the word behind it, which stands alone.
func TestFrameInASlotThatCannotBeRead(t *testing.T) { loses(t, slotted) }

// TestValueThatCannotBeRead: without it the way from the word to the next would not be known.
func TestValueThatCannotBeRead(t *testing.T) { loses(t, valued) }

func loses(t *testing.T, site uint32) {
	r := newRig(t, false)
	r.returns(stack, outside)
	r.hit(plain, stack)
	r.hit(plain, stack)
	r.hit(site, stack, register(5, stack-0x100))
	r.hit(plain, stack)
	r.expect(t, wire.MakeWitness(plain, 0, stack), wire.MakeRepeat(1), wire.MakeResync(wire.Outside, 0), wire.MakeWitness(plain, 0, stack))
	if n := r.Metrics[bpf.TracerMetricMETRIC_UNREADABLE]; n != 1 {
		t.Errorf("%d unreadable words counted", n)
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
	if l := r.Losses[42]; l.Hits != 3 || l.Lost != 1 || r.Metrics[bpf.TracerMetricMETRIC_LOST_HITS] != 1 {
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
	r.expect(t, wire.MakeWitness(plain, 0, stack), wire.MakeRepeat(999), wire.MakeWitness(plain, 0, stack+64), wire.MakeWitness(plain, 0, stack))
}

func TestRepeatNeedsTheSameCase(t *testing.T) {
	r := newRig(t, false)
	for _, v := range []uint64{3, 3, 4} {
		r.hit(table, stack, register(6, v), flags(1)) // CF: ja is not taken
	}
	r.expect(t, wire.MakeCase(3), wire.MakeWitness(table, 0, stack), wire.MakeRepeat(1), wire.MakeCase(4), wire.MakeWitness(table, 0, stack))
}

func TestCases(t *testing.T) {
	const below, above = 1, 0 // the carry flag: ja is not taken, taken
	for _, c := range []struct {
		name   string
		site   uint32
		memory map[uint64]uint64
		change []func(*usermode.Registers)
		want   []wire.Word
	}{
		{"the low bytes of a register", table, nil, []func(*usermode.Registers){register(6, 0xdeadbeef00000005), flags(below)},
			[]wire.Word{wire.MakeCase(5), wire.MakeWitness(table, 0, stack)}},
		{"none on the other side of the check", table, nil, []func(*usermode.Registers){register(6, 5), flags(above)},
			[]wire.Word{wire.MakeWitness(table, 1, stack)}},
		{"a target in memory by base, index and displacement", pointer, map[uint64]uint64{0x9000 + 8*3 + 0x20: base + 0x1234},
			[]func(*usermode.Registers){register(7, 0x9000), register(1, 3)}, []wire.Word{wire.MakeCase(0x1234), wire.MakeWitness(pointer, 0, stack)}},
		{"a byte of the image", global, map[uint64]uint64{base + 0x5000: 0xffffffffffffff07}, nil,
			[]wire.Word{wire.MakeCase(7), wire.MakeWitness(global, 0, stack)}},
		{"a value in the frame", valued, map[uint64]uint64{stack - 0x100 - 24: 0xdeadbeef00000000, stack - 0x100 - 16: 0xffffffffffffffff},
			[]func(*usermode.Registers){register(5, stack-0x100)}, []wire.Word{wire.MakeCase(0xdeadbeef), wire.MakeWitness(valued, 0, stack)}},
		{"a value whatever the outcome", valued, map[uint64]uint64{stack - 0x100 - 24: 5 << 32, stack - 0x100 - 16: 0},
			[]func(*usermode.Registers){register(5, stack-0x100), flags(1 << 6)}, []wire.Word{wire.MakeCase(5), wire.MakeWitness(valued, 1, stack)}},
		{"not to be read", pointer, nil, nil, []wire.Word{wire.MakeCase(1<<60 - 1), wire.MakeWitness(pointer, 0, stack)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, false)
			for a, v := range c.memory {
				r.Memory.Set(a, v)
			}
			r.hit(c.site, stack, c.change...)
			r.expect(t, c.want...)
			unread := uint64(0)
			if c.name == "not to be read" {
				unread = 1
			}
			if n := r.Metrics[bpf.TracerMetricMETRIC_UNREADABLE]; n != unread {
				t.Errorf("%d unreadable values counted, want %d", n, unread)
			}
		})
	}
}

// TestCaseZeroIsSent: a switch's case 0 is a case like any other.
func TestCaseZeroIsSent(t *testing.T) {
	r := newRig(t, false)
	r.hit(table, stack, register(6, 0), flags(1))
	r.expect(t, wire.MakeCase(0), wire.MakeWitness(table, 0, stack))
}

func TestFirstWordSendsItsCaller(t *testing.T) {
	for _, c := range []struct {
		name    string
		address uint64
		want    wire.Word
	}{
		{"inside", base + 0x2000, wire.MakeFrom(wire.Inside, 0x2000)},
		{"inside, no call of the plan", base + 0x3000, wire.MakeFrom(wire.Inside, 0x3000)},
		{"outside", outside, wire.MakeFrom(wire.Outside, 0)},
		{"just behind the image", base + size, wire.MakeFrom(wire.Outside, 0)},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, false)
			r.returns(stack, c.address)
			r.hit(first, stack)
			r.expect(t, c.want, wire.MakeWitness(first, 0, stack))
		})
	}
}

func TestChainEndsAtTheFirstCallerThatHasSpoken(t *testing.T) {
	r := newRig(t, false)
	r.returns(stack, base+0x1000)
	r.returns(stack+32, base+0x1000)
	r.returns(stack+64, base+0x2000)
	r.returns(stack+112, outside)
	r.hit(first, stack)
	r.expect(t, wire.MakeFrom(wire.Inside, 0x1000), wire.MakeFrom(wire.Inside, 0x1000), wire.MakeFrom(wire.Inside, 0x2000), wire.MakeWitness(first, 0, stack))
}

func TestChainIsSentOnce(t *testing.T) {
	from, word := wire.MakeFrom(wire.Inside, 0x2000), wire.MakeWitness(first, 0, stack)
	r := newRig(t, false)
	r.returns(stack, base+0x2000)
	r.hit(first, stack)
	r.hit(jump, stack)
	r.hit(first, stack)
	r.expect(t, from, word, wire.MakeWitness(jump, 0, stack), word)
}

func TestChainIsSentAnew(t *testing.T) {
	const up, in = stack + 256, stack - 1<<32
	word := wire.MakeWitness(first, 0, stack)
	inner := wire.MakeFrom(wire.Inside, 0x2000)
	for _, c := range []struct {
		name string
		then func(r *rig)
		want []wire.Word
	}{
		{"from another caller", func(r *rig) { r.returns(stack, outside) }, []wire.Word{wire.MakeFrom(wire.Outside, 0), word}},
		{"after a word further out", func(r *rig) { r.hit(plain, up) }, []wire.Word{wire.MakeWitness(plain, 0, up), inner, word}},
		{"after a word of what a handler on a higher stack had interrupted", func(r *rig) { r.hit(plain, in) }, []wire.Word{wire.MakeWitness(plain, 0, in), inner, word}},
		{"for another routine", func(r *rig) { sites[first].Routine = 2 }, []wire.Word{inner, word}},
	} {
		t.Run(c.name, func(t *testing.T) {
			defer func() { sites[first].Routine = 1 }()
			r := newRig(t, false)
			r.returns(stack, base+0x2000)
			r.hit(first, stack)
			c.then(r)
			r.hit(first, stack)
			r.expect(t, append([]wire.Word{inner, word}, c.want...)...)
		})
	}
}

// TestActivationThatGoesOn: the callers of an activation are not looked up where the word before says that no other can have begun.
func TestActivationThatGoesOn(t *testing.T) {
	const up = stack + 256
	taken := flags(0x40)
	inner, outer := wire.MakeFrom(wire.Inside, 0x2000), wire.MakeFrom(wire.Outside, 0)
	on, over := wire.MakeWitness(looping, 1, stack), wire.MakeWitness(looping, 0, stack)
	for _, c := range []struct {
		name string
		run  func(r *rig)
		want []wire.Word
	}{
		{"goes on", func(r *rig) { r.hit(looping, stack, taken); r.returns(stack, outside); r.hit(looping, stack) }, []wire.Word{inner, on, over}},
		{"may have ended", func(r *rig) { r.hit(looping, stack); r.returns(stack, outside); r.hit(looping, stack) }, []wire.Word{inner, over, outer, over}},
		{"interrupted by a word further out", func(r *rig) { r.hit(looping, stack, taken); r.hit(plain, up); r.hit(looping, stack) },
			[]wire.Word{inner, on, wire.MakeWitness(plain, 0, up), inner, over}},
		{"another on the same alternate stack", func(r *rig) {
			r.returns(up, outside)
			r.hit(looping, up)
			r.hit(staying, stack)
			r.returns(up, base+0x2000)
			r.hit(looping, up)
		}, []wire.Word{outer, wire.MakeWitness(looping, 0, up), wire.MakeWitness(staying, 0, stack), inner, wire.MakeWitness(looping, 0, up)}},
		{"interrupted by another activation", func(r *rig) {
			r.hit(looping, stack, taken)
			r.returns(up, outside)
			r.hit(looping, up, taken)
			r.hit(looping, stack)
		}, []wire.Word{inner, on, outer, wire.MakeWitness(looping, 1, up), inner, over}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, false)
			r.returns(stack, base+0x2000)
			c.run(r)
			r.expect(t, c.want...)
		})
	}
}

func TestChainThatCannotBeRead(t *testing.T) {
	r := newRig(t, false)
	r.hit(first, stack)
	r.expect(t, wire.MakeFrom(wire.Outside, 0), wire.MakeWitness(first, 0, stack))
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
	if n := len(r.words(t)); n != usermode.ChainMax+1 {
		t.Errorf("%d words, want %d callers and the witness", n, usermode.ChainMax)
	}
	if r.Metrics[bpf.TracerMetricMETRIC_LONG_CHAIN] != 1 {
		t.Error("the long chain was not counted")
	}
}

func TestHandlerTellsWhatItInterrupted(t *testing.T) {
	const movRAX, movEAX = 0x0f0000000fc0c748, 0x050f0000000fb8
	for _, c := range []struct {
		name     string
		code, ip uint64
		want     wire.Word
	}{
		{"inside", movRAX, base + 0x777, wire.MakeFrom(wire.Handler, 0x777)},
		{"inside, other restorer", movEAX, base + 0x777, wire.MakeFrom(wire.Handler, 0x777)},
		{"outside", movRAX, outside, wire.MakeFrom(wire.HandlerOutside, 0)},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, false)
			r.Memory.Set(trap, c.code)
			r.returns(stack, trap)
			r.Memory.Set(stack+usermode.SignalFrameRIP, c.ip)
			r.hit(first, stack)
			r.expect(t, c.want, wire.MakeWitness(first, 0, stack))
		})
	}
}

// TestHandlerAgainElsewhere: the same handler on the same stack, which interrupted another instruction, is another activation.
func TestHandlerAgainElsewhere(t *testing.T) {
	r := newRig(t, false)
	r.Memory.Set(trap, 0x0f0000000fc0c748)
	r.returns(stack, trap)
	var want []wire.Word
	for _, ip := range []uint64{0x100, 0x200} {
		r.Memory.Set(stack+usermode.SignalFrameRIP, base+ip)
		r.hit(first, stack)
		want = append(want, wire.MakeFrom(wire.Handler, ip), wire.MakeWitness(first, 0, stack))
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
	r.expect(t, wire.MakeResync(wire.Inside, 0x2000), wire.MakeResync(wire.Inside, 0x1000), wire.MakeResync(wire.Outside, 0),
		wire.MakeWitness(plain, 0, stack), wire.MakeWitness(plain, 0, stack+8))
}

func TestResyncOfAStackThatCannotBeRead(t *testing.T) {
	r := newRig(t, true)
	r.returns(stack, base+0x1000)
	r.hit(plain, stack)
	r.expect(t, wire.MakeResync(wire.Inside, 0x1000), wire.MakeResync(wire.Unreadable, 0), wire.MakeWitness(plain, 0, stack))
}

func TestResyncOfAnEndlessStack(t *testing.T) {
	r := newRig(t, true)
	for i := range uint64(usermode.ResyncMax) {
		r.returns(stack+32*i, base+0x1000)
	}
	r.hit(plain, stack)
	words := r.words(t)
	if len(words) != usermode.ResyncMax+1 {
		t.Fatalf("%d words, want %d callers and the witness", len(words), usermode.ResyncMax)
	}
	if got, want := words[len(words)-2], wire.MakeResync(wire.Truncated, 0); got != want {
		t.Errorf("the chain ends with %v, want %v", got, want)
	}
}

func TestBatchIsSentWhenItIsFull(t *testing.T) {
	r := newRig(t, false)
	for i := range uint64(usermode.BatchWords) {
		if len(r.Records) != 0 {
			t.Fatalf("sent after %d words", i)
		}
		r.hit(plain, stack+16*i)
	}
	if len(r.Records) != 1 {
		t.Fatalf("%d records after %d words, want 1", len(r.Records), usermode.BatchWords)
	}
	r.hit(plain, stack)
	r.Exit(r.thread, base+0x10)
	for i, want := range []wire.Batch{{Thread: 42, Started: 7, Hits: usermode.BatchWords}, {Thread: 42, Started: 7, Sequence: 1, Hits: usermode.BatchWords + 1}} {
		b, err := wire.ParseBatch(r.Records[i])
		if err != nil {
			t.Fatal(err)
		}
		if b.Thread != want.Thread || b.Started != want.Started || b.Sequence != want.Sequence || b.Hits != want.Hits || b.Lost != 0 {
			t.Errorf("batch %d: %+v, want %+v", i, b, want)
		}
	}
	words := r.words(t)
	if got, want := words[len(words)-1], wire.MakeEnd(wire.Inside, 0x10); got != want {
		t.Errorf("the last word is %v, want %v", got, want)
	}
}

// TestNothingIsSentOfNothing: a thread that has said nothing since sends no empty batch.
func TestNothingIsSentOfNothing(t *testing.T) {
	r := newRig(t, false)
	r.hit(plain, stack)
	r.Drain(r.thread)
	r.Drain(r.thread)
	if len(r.Records) != 1 {
		t.Errorf("%d records, want 1", len(r.Records))
	}
}

// TestRestIsSentOnce: a thread that ends on one processor while it is drained on another is handed over by one of them, its words whole and once.
func TestRestIsSentOnce(t *testing.T) {
	drain := func(m *usermode.Machine, thread *usermode.Thread) { m.Drain(thread) }
	exit := func(m *usermode.Machine, thread *usermode.Thread) { m.Exit(thread, base+0x10) }
	for _, c := range []struct {
		name          string
		first, second func(*usermode.Machine, *usermode.Thread)
		words         int
	}{{"drained, then ends", drain, exit, 1}, {"ends, then drained", exit, drain, 2}} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, false)
			other := usermode.New(sites, calls, base, size)
			r.Output = func([]byte) bool {
				c.second(other, r.thread)
				return true
			}
			r.hit(plain, stack)
			c.first(r.Machine, r.thread)
			if len(other.Records) > 0 {
				t.Errorf("the second sent %d batches while the first was at it", len(other.Records))
			}
			if words := r.words(t); len(words) != c.words || words[0] != wire.MakeWitness(plain, 0, stack) {
				t.Errorf("words %v", words)
			}
		})
	}
}

func TestUnknownSiteIsCounted(t *testing.T) {
	r := newRig(t, false)
	r.hit(uint32(len(sites)), stack)
	r.expect(t)
	if r.Metrics[bpf.TracerMetricMETRIC_NO_SITE] != 1 {
		t.Error("the hit of no site was not counted")
	}
}

// TestWordAfterALossStandsAlone: what was remembered is forgotten with a lost batch.
func TestWordAfterALossStandsAlone(t *testing.T) {
	r := newRig(t, false)
	r.returns(stack, base+0x2000)
	r.returns(stack+48, outside)
	r.hit(first, stack)
	r.Output = func([]byte) bool { return false }
	r.Drain(r.thread)
	r.Output = func([]byte) bool { return true }
	r.hit(first, stack)
	r.expect(t, wire.MakeResync(wire.Inside, 0x2000), wire.MakeResync(wire.Outside, 0), wire.MakeWitness(first, 0, stack))
	if diff := cmp.Diff(bpf.TracerLoss{Hits: 1, Lost: 1}, r.Losses[42], cmp.Comparer(func(a, b bpf.TracerLoss) bool { return a == b })); diff != "" {
		t.Errorf("loss differs (-want +got):\n%s", diff)
	}
}

// TestLossesAddUp: whatever is refused, hits = received + lost, batch by batch and at the end.
func TestLossesAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := newRig(t, rapid.Bool().Draw(t, "midRun"))
		for i := range uint64(64) {
			r.returns(stack+16*i, []uint64{base + 0x1000, base + 0x2000, outside}[i%3])
		}
		refuse := rapid.SliceOfN(rapid.Bool(), 1, 40).Draw(t, "refuse")
		batches := 0
		r.Output = func([]byte) bool {
			batches++
			return !refuse[batches%len(refuse)]
		}
		hits := uint64(rapid.IntRange(0, 2000).Draw(t, "hits"))
		sequence := rapid.SliceOfN(rapid.IntRange(0, 255), 1, 64).Draw(t, "sequence")
		for i := range hits {
			v := uint64(sequence[i%uint64(len(sequence))])
			r.hit(uint32(v%3), stack+16*(v>>3))
		}
		r.Drain(r.thread)
		var received, lost, next uint64
		for _, record := range r.Records {
			b, err := wire.ParseBatch(record)
			if err != nil {
				t.Fatal(err)
			}
			if b.Lost == lost && b.Sequence != next {
				t.Fatalf("batch %d follows batch %d without a loss", b.Sequence, next)
			}
			next, lost = b.Sequence+1, b.Lost
			received += b.Witnesses()
			if received+lost != b.Hits {
				t.Fatalf("batch %d: %d received + %d lost are not %d hits", b.Sequence, received, lost, b.Hits)
			}
		}
		if l, ok := r.Losses[42]; ok {
			lost = l.Lost
		}
		if received+lost != hits {
			t.Fatalf("%d received + %d lost are not %d hits", received, lost, hits)
		}
		if n := r.Metrics[bpf.TracerMetricMETRIC_LOST_HITS]; n != lost {
			t.Fatalf("%d lost hits counted, %d lost", n, lost)
		}
	})
}

// TestChainTornByALoss: when a batch is refused in the middle of what a hit says, the next one must not begin with the rest of it: half a chain
// names wrong callers, and a witness without its case goes an unknown way.
func TestChainTornByALoss(t *testing.T) {
	for _, c := range []struct {
		name   string
		midRun bool
		site   uint32
		fill   uint64 // words in the batch before the hit
	}{
		{"between two callers", false, first, usermode.BatchWords - 1},
		{"between the chain and its witness", false, first, usermode.BatchWords - 3},
		{"between the case and its witness", false, table, usermode.BatchWords - 1},
		{"within a resync", true, plain, usermode.BatchWords},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, c.midRun)
			r.returns(stack, base+0x1000)
			callers := uint64(3)
			if c.midRun {
				callers = usermode.BatchWords + 3
			}
			for i := uint64(1); i < callers-1; i++ {
				r.returns(stack+32*i, base+0x1000)
			}
			r.returns(stack+32*(callers-1), outside)
			if !c.midRun {
				for i := range c.fill {
					r.hit(plain, stack-16*(i+1))
				}
			}
			refused := 0
			r.Output = func([]byte) bool { refused++; return refused > 1 }
			r.hit(c.site, stack, register(6, 5), flags(1))
			var want []wire.Word
			for range callers - 1 {
				want = append(want, wire.MakeResync(wire.Inside, 0x1000))
			}
			want = append(want, wire.MakeResync(wire.Outside, 0))
			if c.site == table {
				want = append(want, wire.MakeCase(5))
			}
			r.expect(t, append(want, wire.MakeWitness(int(c.site), 0, stack))...)
		})
	}
}
