package truth_test

import (
	"bytes"
	"strings"
	"testing"

	"wpptrace/kernel-tests/truth"
	"wpptrace/kernel-tests/truth/states"
)

// reported is what a tracer says that is right in all, of the first steps of a sample.
func reported(t *testing.T, steps int) ([]*truth.ValueStream, *truth.Trace, truth.Routines) {
	t.Helper()
	s, err := states.Load("values_one")
	if err != nil {
		t.Fatal(err)
	}
	thread := s.Trace.Threads[0]
	thread.Insns, thread.Values = thread.Insns[:steps], thread.Values[:steps]
	var b bytes.Buffer
	if err := truth.WriteValues(&b, thread, "image"); err != nil {
		t.Fatal(err)
	}
	got, err := truth.ParseValues(&b, "")
	if err != nil {
		t.Fatal(err)
	}
	return got, s.Trace, truth.Routines{{Start: 0, End: 1 << 40, Traced: true, Name: "all"}}
}

func TestCompareValuesOfTheTruth(t *testing.T) {
	got, want, routines := reported(t, 2000)
	report, err := truth.CompareValues(got, want, routines)
	if err != nil {
		t.Fatal(err)
	}
	if report.Steps != 2000 || report.Confirmed != 2000 || report.Known() != 1 {
		t.Errorf("report is %+v", report)
	}
}

// TestCompareValuesFindsEachDifference changes one value at a time.
func TestCompareValuesFindsEachDifference(t *testing.T) {
	const steps = 400
	got, want, routines := reported(t, steps)
	changed := 0
	expect := func(what string) {
		changed++
		if _, err := truth.CompareValues(got, want, routines); err == nil {
			t.Fatalf("%s is not found", what)
		} else if !strings.Contains(err.Error(), "=>") {
			t.Fatalf("%v shows no neighbourhood", err)
		}
	}
	for i := 0; i < steps; i += 7 {
		s := &got[0].Steps[i]
		for k := range s.Registers {
			s.Registers[k].Value ^= 4
			expect("a register's value")
			s.Registers[k].Sureness = truth.Unconfirmed
			expect("a register's unconfirmed value")
			s.Registers[k].Value ^= 4
			s.Registers[k].Sureness = truth.Confirmed
		}
		for k := range s.Accesses {
			a := &s.Accesses[k]
			a.Bytes[0] ^= 1
			expect("a byte of memory")
			a.Bytes[0] ^= 1
			a.Addr += 64
			expect("an address")
			a.Addr -= 64
		}
		if all := s.Registers; len(all) > 0 {
			s.Registers = all[1:]
			expect("a register that is missing")
			s.Registers = all
		}
		if all := s.Accesses; len(all) > 0 {
			s.Accesses = all[1:]
			expect("an access that is missing")
			s.Accesses = all
		}
	}
	if changed < 50 {
		t.Errorf("%d changes", changed)
	}
}

// TestCompareFlagsAndVectors: what flags were before an instruction that uses them, which these
// are, and what vectors hold behind it.
func TestCompareFlagsAndVectors(t *testing.T) {
	want := &truth.Trace{Threads: []*truth.Thread{{Insns: []uint64{0x10, 0x13},
		Values: []truth.Step{
			{PC: 0x10, Flags: 0x246, FlagsUsed: 2},
			{PC: 0x13, Flags: 0x246, FlagsUsed: 0x43,
				Vectors: []truth.VectorValue{{Register: 3, Bytes: [16]byte{7, 1}}}},
		}}}}
	routines := truth.Routines{{Start: 0x10, End: 0x20, Traced: true, Name: "f"}}
	for line, isRight := range map[string]bool{
		"f[41]=40 xmm3=107":   true,
		"f[41]=40? xmm3=-":    true,
		"f[41]=- xmm4=1":      true, // the instruction does not name xmm4
		"f[40]=40":            false,
		"f[45]=44":            false,
		"":                    false,
		"f[41]=0":             false,
		"f[41]=41?":           false,
		"f[41]=40 xmm3=108":   false,
		"f[41]=40 xmm3=1000?": false,
	} {
		got, err := truth.ParseValues(strings.NewReader("1 image 10\n1 image 13 "+line+"\n"), "")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := truth.CompareValues(got, want, routines); (err == nil) != isRight {
			t.Errorf("%s: %v", line, err)
		}
	}
}

func TestCompareValuesCountsWhatIsNotKnown(t *testing.T) {
	text := `1 image 10 rax=- r[-:8]=-
1 image 13 rcx=5? w[100:4]=1?
#cut
1 image 17
`
	got, err := truth.ParseValues(strings.NewReader(text), "")
	if err != nil {
		t.Fatal(err)
	}
	want := &truth.Trace{Threads: []*truth.Thread{{Insns: []uint64{0x10, 0x13, 0x17},
		Values: []truth.Step{
			{PC: 0x10, Written: []truth.RegisterValue{{Register: 0, Value: 7}},
				Reads: []truth.MemoryValue{{Addr: 0x20, Bytes: make([]byte, 8)}}},
			{PC: 0x13, Written: []truth.RegisterValue{{Register: 1, Value: 5}},
				Writes: []truth.MemoryValue{{Addr: 0x100, Bytes: []byte{1, 0, 0, 0}}}},
			{PC: 0x17},
		}}}}
	report, err := truth.CompareValues(got, want,
		truth.Routines{{Start: 0x10, End: 0x20, Traced: true, Name: "f"}})
	if err != nil {
		t.Fatal(err)
	}
	if report.Unknown != 1 || report.Unconfirmed != 1 || report.Confirmed != 1 ||
		report.ByPlace[0x10] != 1 {
		t.Errorf("report is %+v", report)
	}
}

func FuzzParseValues(f *testing.F) {
	f.Add("1 image 10 rax=- r[-:8]=-\n#gap 3\n1 image 13 rcx=5? w[100:4]=1?\n")
	f.Add("1 image 10 f[41]=40? xmm3=107\n")
	f.Fuzz(func(_ *testing.T, text string) {
		_, _ = truth.ParseValues(strings.NewReader(text), "")
	})
}
