package exact

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"wpptrace/kernel-tests/truth"
)

func TestARecordWithoutARoutine(t *testing.T) {
	r := &Record{
		Routines: truth.Routines{{Start: 0x10, End: 0x20, Traced: true, Name: "kept"},
			{Start: 0x20, End: 0x30, Traced: true, Name: "aside"}},
		Streams: []*truth.Stream{{TID: 7, Insns: []uint64{0x10, 0x20, 0x21, 0x11, 0x22},
			Marks: []truth.Mark{{Index: 2, Kind: "unwind"}, {Index: 3, Kind: "handler"},
				{Index: 5, Kind: "cut"}}}},
	}
	got := r.without([]string{"aside"})
	want := []*truth.Stream{{TID: 7, Insns: []uint64{0x10, 0x11},
		Marks: []truth.Mark{{Index: 1, Kind: "unwind"}, {Index: 1, Kind: "handler"},
			{Index: 2, Kind: "cut"}}}}
	if d := cmp.Diff(want, got.Streams); d != "" {
		t.Error(d)
	}
	if got.Routines[1].Traced || !r.Routines[1].Traced {
		t.Error("the routine is to be untraced in the new record alone")
	}
}

func TestOwnCode(t *testing.T) {
	miss := func(reason string, n int) truth.Missed {
		return truth.Missed{Routine: truth.Routine{Reason: reason}, Insns: n}
	}
	c := func() truth.Coverage {
		return truth.Coverage{Known: 100, Traced: 50, Missed: []truth.Missed{
			miss("stores its own return address (may return twice)", 30),
			miss("outermost frame (no caller)", 10), miss("needs a single-stepped probe", 10)}}
	}
	if got := ownCode(c(), false); got.Known != 90 || len(got.Missed) != 2 {
		t.Errorf("dynamic: %+v", got)
	}
	if got := ownCode(c(), true); got.Known != 60 || len(got.Missed) != 1 {
		t.Errorf("static: %+v", got)
	}
}

func TestATruthEndsAtAnExec(t *testing.T) {
	run := &truth.Trace{Threads: []*truth.Thread{{Insns: []uint64{0x10, 0x11, 0x12, 0x10, 0x11}}}}
	until := UntilExec(run)
	if d := cmp.Diff([]uint64{0x10, 0x11, 0x12}, until.Threads[0].Insns); d != "" {
		t.Error(d)
	}
	r := &Record{Routines: truth.Routines{{Start: 0x10, End: 0x20, Traced: true}},
		Streams: []*truth.Stream{{Insns: []uint64{0x10, 0x11}}}}
	if d := cmp.Diff([]uint64{0x10, 0x11}, r.withoutUnseenEnd(until).Threads[0].Insns); d != "" {
		t.Error(d)
	}
}
