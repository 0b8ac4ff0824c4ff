package truth

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

const routineList = "prog\t100\t140\tobserved\tmain\n" +
	"prog\t140\t160\tobserved\tleaf\n" +
	"prog\t160\t180\tleft-out:jump table\tlost\n" +
	"prog\t180\t1a0\tobserved\thandler\n" +
	"lib.so\t100\t200\tobserved\telsewhere\n"

func routines(t interface{ Fatal(...any) }) Routines {
	rs, err := ParseRoutines(strings.NewReader(routineList), "prog")
	if err != nil {
		t.Fatal(err)
	}
	return rs
}

// record writes a dump of one thread: addresses, and marks that start with #.
func record(t *testing.T, text string) []*Stream {
	t.Helper()
	var b strings.Builder
	for _, field := range strings.Fields(text) {
		if strings.HasPrefix(field, "#") {
			b.WriteString(field + "\n")
		} else {
			b.WriteString("7 prog " + field + "\n")
		}
	}
	streams, err := ParseInsns(strings.NewReader(b.String()), "prog")
	if err != nil {
		t.Fatal(err)
	}
	return streams
}

func TestCompare(t *testing.T) {
	plain := &Thread{Insns: []uint64{0x20, 0x100, 0x104, 0x140, 0x162, 0x108, 0x10c, 0x110, 0x130}}
	// A timer's handler twice, by different ways, and a fault's whose handler jumps away, in the
	// middle of a block.
	handled := &Thread{
		Insns: []uint64{0x100, 0x180, 0x184, 0x104, 0x180, 0x188, 0x108, 0x190, 0x194, 0x120},
		Events: []Event{
			{Index: 1, Kind: Delivered, Signal: 14}, {Index: 3, Kind: Returned},
			{Index: 4, Kind: Delivered, Signal: 14}, {Index: 6, Kind: Returned},
			{Index: 7, Kind: Delivered, Signal: 11}, {Index: 9, Kind: Left},
		},
	}
	eventless := &Thread{Insns: []uint64{0x100, 0x104, 0x140, 0x144, 0x140, 0x148}}
	for _, test := range []struct {
		name   string
		want   *Thread
		mode   Mode
		record string
		errors string // "" or a part of the error
	}{
		{"equal", plain, Exact, "100 104 140 108 10c 110 130", ""},
		{"one missing", plain, Exact, "100 104 108 10c 110 130", "instruction 2 differs"},
		{"one too many", plain, Exact, "100 104 140 108 10c 110 110 130", "instruction 6 differs"},
		{"another", plain, Exact, "100 104 144 108 10c 110 130", "instruction 2 differs"},
		{"end missing", plain, Exact, "100 104 140 108 10c 110", "instruction 6 differs"},
		{"more at the end", plain, Exact, "100 104 140 108 10c 110 130 100",
			"instruction 7 differs"},
		{"outside of what is traced", plain, Exact, "100 104 140 162 108 10c 110 130",
			"not in a traced routine"},
		{"tail cut off", plain, Exact, "100 104 140 108 #cut 130", ""},
		{"tail missing without a cut", plain, Exact, "100 104 140 108 130",
			"instruction 4 differs"},
		{"cut elsewhere", plain, Exact, "100 104 140 #cut 108 130", "instruction 4 differs"},
		{"cut hides a callee", plain, Exact, "100 104 #cut 108 10c 110 130",
			"instruction 2 differs"},
		{"cut hides a jump", plain, Exact, "100 104 140 108 10c 110 #cut", ""},
		{"cut at the end", plain, Exact, "100 104 140 108 #cut", "instruction 4 differs"},
		{"handlers in place", handled, Exact, "100 180 184 104 180 188 108 190 194 120", ""},
		{"handlers elsewhere", handled, Exact, "100 104 180 184 180 188 108 190 194 120",
			"instruction 1 differs"},
		{"handlers apart", handled, Apart, "100 104 #handler 180 184 108 190 194 120", ""},
		{"timer never", handled, Apart, "100 104 108 190 194 120", ""},
		{"timer often", handled, Apart, "180 188 100 180 184 180 184 104 108 190 194 120 180 184",
			""},
		{"unknown way of the timer", handled, Apart, "180 18c 100 104 108 190 194 120",
			"in a signal handler"},
		{"half a handler", handled, Apart, "100 104 108 190 120", "in a signal handler"},
		{"fault's handler missing", handled, Apart, "100 104 108 120",
			"handler activations of the truth are missing"},
		{"fault's handler twice", handled, Apart, "100 104 108 190 194 190 194 120",
			"instruction 5 differs"},
		{"interrupted path cut before the handler", handled, Apart, "100 #cut #handler 190 194 120",
			""},
		{"interrupted path cut after the handler", handled, Apart, "100 #handler 190 194 #cut 120",
			""},
		{"handler cut off", handled, Apart, "100 104 108 190 #cut 120", ""},
		{"cut hides what ran without an event", eventless, Apart, "100 #cut", ""},
		{"cut hides what ran without an event, in order", eventless, Exact, "100 #cut",
			"instruction 1 differs"},
		{"cut hides a way into the middle", plain, Apart, "100 104 140 #cut 110 130",
			"instruction 3 differs"},
		{"contiguous", plain, Contiguous, "140 108 10c", ""},
		{"contiguous with a loss", plain, Contiguous, "104 140 #gap 110 130", ""},
		{"pieces", plain, Pieces, "104 140 #resume 110 130", ""},
		{"contiguous but for a hole", plain, Contiguous, "104 140 #resume 110 130",
			"not a contiguous part"},
		{"hole without a mark", plain, Contiguous, "104 140 110 130", "not a contiguous part"},
		{"pieces in the wrong order", plain, Contiguous, "110 130 #gap 104 140",
			"not a contiguous part"},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := Compare(record(t, test.record), &Trace{Threads: []*Thread{test.want}},
				routines(t), test.mode)
			switch {
			case test.errors == "" && err != nil:
				t.Error(err)
			case test.errors != "" && err == nil:
				t.Errorf("no error, want one with %q", test.errors)
			case test.errors != "" && !strings.Contains(err.Error(), test.errors):
				t.Errorf("error %q, want one with %q", err, test.errors)
			}
		})
	}
}

func TestCompareShowsNeighbourhood(t *testing.T) {
	want := &Trace{Threads: []*Thread{{Insns: []uint64{0x100, 0x104, 0x140}}}}
	err := Compare(record(t, "100 #unwind 108"), want, routines(t), Exact)
	if err == nil {
		t.Fatal("no error")
	}
	const text = `thread 0 (id 7): instruction 1 differs
  record:
      100 main+0
      #unwind
   => 108 main+8
  truth:
      100 main+0
   => 104 main+4
      140 leaf+0`
	if err.Error() != text {
		t.Errorf("got:\n%s\nwant:\n%s", err, text)
	}
}

func TestComparePairsThreads(t *testing.T) {
	want := &Trace{Threads: []*Thread{
		{Insns: []uint64{0x100, 0x104}},
		{Insns: []uint64{0x20, 0x30}}, // nothing traced
		{Insns: []uint64{0x140}},
	}}
	streams, err := ParseInsns(strings.NewReader("5 prog 100\n9 prog 140\n5 prog 104\n"), "prog")
	if err != nil {
		t.Fatal(err)
	}
	if err := Compare(streams, want, routines(t), Exact); err != nil {
		t.Error(err)
	}
	if err := Compare(streams[:1], want, routines(t), Exact); err == nil {
		t.Error("a thread is missing, and no error")
	}
	if err := Compare([]*Stream{streams[1], streams[0]}, want, routines(t), Exact); err == nil {
		t.Error("threads are exchanged, and no error")
	}
}

// Whatever ran, its own record agrees with it, and no record with one instruction changed, added or
// taken out does.
func TestCompareFindsEveryChange(t *testing.T) {
	rs := routines(t)
	rapid.Check(t, func(t *rapid.T) {
		pc := rapid.SampledFrom([]uint64{0x100, 0x104, 0x108, 0x140, 0x144, 0x180})
		insns := rapid.SliceOfN(pc, 1, 40).Draw(t, "insns")
		want := &Trace{Threads: []*Thread{{Insns: insns}}}
		if err := Compare([]*Stream{{Insns: slices.Clone(insns)}}, want, rs, Exact); err != nil {
			t.Fatal(err)
		}
		at := rapid.IntRange(0, len(insns)-1).Draw(t, "at")
		changed := slices.Clone(insns)
		switch rapid.IntRange(0, 2).Draw(t, "change") {
		case 0:
			changed = slices.Delete(changed, at, at+1)
		case 1:
			changed = slices.Insert(changed, at, pc.Draw(t, "added"))
		default:
			changed[at] ^= 0x3c
		}
		if err := Compare([]*Stream{{Insns: changed}}, want, rs, Exact); err == nil {
			t.Fatalf("no difference between %x and %x", changed, insns)
		}
	})
}

func TestParseInsnsPlacesMarks(t *testing.T) {
	const dump = "#resume\n1 prog 10\n1 lib.so 99\n#gap 1\n1 prog 14\n#cut\n2 prog 20\n#unwind " +
		"2\n2 prog 24\n#handler\n1 prog 18\n#cut\n"
	streams, err := ParseInsns(strings.NewReader(dump), "prog")
	if err != nil {
		t.Fatal(err)
	}
	if len(streams) != 2 || !slices.Equal(streams[0].Insns, []uint64{0x10, 0x14, 0x18}) ||
		!slices.Equal(streams[1].Insns, []uint64{0x20, 0x24}) {
		t.Fatalf("streams %+v", streams)
	}
	if want := []Mark{{0, "resume"}, {1, "gap"}, {2, "cut"}, {2, "handler"},
		{3, "cut"}}; !slices.Equal(streams[0].Marks, want) {
		t.Errorf("marks of the first thread %v, want %v", streams[0].Marks, want)
	}
	if want := []Mark{{1, "unwind"}}; !slices.Equal(streams[1].Marks, want) {
		t.Errorf("marks of the second thread %v, want %v", streams[1].Marks, want)
	}
}

func TestParseErrors(t *testing.T) {
	for _, dump := range []string{"1 prog", "x prog 10", "1 prog xyz", "1 prog 10 20",
		"1 prog 10000000000000000"} {
		if _, err := ParseInsns(strings.NewReader(dump), ""); err == nil {
			t.Errorf("dump %q: no error", dump)
		}
	}
	for _, list := range []string{"prog 1 2 observed x", "prog\tx\t2\tobserved\tf",
		"prog\t1\tx\tobserved\tf", "prog\t1\t2\tmaybe\tf"} {
		if _, err := ParseRoutines(strings.NewReader(list), ""); err == nil {
			t.Errorf("list %q: no error", list)
		}
	}
}

func TestCover(t *testing.T) {
	trace := &Trace{Threads: []*Thread{{Insns: []uint64{0x20, 0x100, 0x104, 0x160, 0x140}}}}
	c := Cover(trace, routines(t))
	if c.Known != 4 || c.Traced != 3 || c.Share() != 0.75 {
		t.Errorf("known %d, traced %d, share %g", c.Known, c.Traced, c.Share())
	}
	if len(c.Missed) != 1 || c.Missed[0].Routine.Reason != "jump table" || c.Missed[0].Insns != 1 {
		t.Errorf("missed %+v", c.Missed)
	}
}

func TestClassify(t *testing.T) {
	for _, test := range []struct {
		code string
		want opcode
	}{
		{"\xf3\xaa", repString},
		{"\xf3\x48\xa5", repString},
		{"\xf2\xae", repString},
		{"\x66\xf3\xa7", repString},
		{"\xaa", ordinary},
		{"\xf3\xc3", ordinary},
		{"\xf3\x0f\x10\xaa", ordinary},
		{"\x0f\x05", syscallOp},
		{"\xcc", int3},
		{"\xf3", ordinary},
		{"", ordinary},
	} {
		if got := classify([]byte(test.code)); got != test.want {
			t.Errorf("classify(% x) = %d, want %d", test.code, got, test.want)
		}
	}
}

func FuzzParseInsns(f *testing.F) {
	f.Add("7 prog 100\n#cut\n8 prog 1f\n#gap 12\n")
	f.Add("#\n\n# gap\n3 x ffffffffffffffff")
	f.Fuzz(func(t *testing.T, dump string) {
		streams, err := ParseInsns(strings.NewReader(dump), "")
		if err != nil {
			return
		}
		for _, s := range streams {
			if len(s.Insns) == 0 {
				t.Errorf("thread %d has no instruction", s.TID)
			}
			for _, m := range s.Marks {
				if m.Index > len(s.Insns) {
					t.Errorf("mark at %d of %d", m.Index, len(s.Insns))
				}
			}
		}
	})
}

func FuzzParseRoutines(f *testing.F) {
	f.Add(routineList, uint64(0x104))
	f.Fuzz(func(t *testing.T, list string, pc uint64) {
		rs, err := ParseRoutines(strings.NewReader(list), "")
		if err != nil {
			return
		}
		if r, ok := rs.Find(pc); ok && (pc < r.Start || pc >= r.End) {
			t.Errorf("found %+v for %x", r, pc)
		}
	})
}
