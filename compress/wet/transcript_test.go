package wet

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"wpptrace/compress/wet/machine"
	"wpptrace/compress/wet/memory"
)

func at1(insn int) Place { return Place{Routine: 1, Block: 2, Insn: insn} }

// written is a log that says some things.
func written(said []said) []byte {
	l := Log{said: said}
	return l.append(nil, l.said)
}

// drawSaid draws something that a log may say.
func drawSaid(t *rapid.T) said {
	f := rapid.SampledFrom([]field{entryBits, loadCode, recoveryIsEmpty, resultIsEmpty,
		entryRegisters, entryValue + 3, loadWord, loadWord + 1, usedValue}).Draw(t, "field")
	most := uint64(1)
	switch f {
	case entryBits:
		most = 127
	case loadCode:
		most = notKnown
	case recoveryIsEmpty, resultIsEmpty:
	default:
		most = 1<<64 - 1
	}
	n := rapid.Uint64Range(0, most).Draw(t, "number")
	if rapid.Bool().Draw(t, "near") {
		n = min(most, 0x7ffff000+8*uint64(rapid.IntRange(0, 3).Draw(t, "far")))
	}
	return said{cellOf(at1(rapid.IntRange(0, 3).Draw(t, "instruction")), f), n,
		rapid.SampledFrom([]uint64{0, 3, 0x7ffff008}).Draw(t, "about")}
}

// What is read is what was said.
func TestTranscript(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfN(rapid.Custom(drawSaid), 0, 80).Draw(t, "said")
		p := readLog(&reader{rest: written(slices.Clone(all))})
		for _, s := range all {
			if n := p.said.number(s.in, s.about); n != s.number {
				t.Fatalf("%+v is %d", s, n)
			}
		}
		if err := p.failed(); err != nil {
			t.Fatal(err)
		}
		for range 2 { // it fails once
			n := p.said.number(cellOf(at1(0), loadWord), 0)
			if err := p.failed(); n != 0 || err == nil ||
				err.Error() != "it says less than it should" {
				t.Fatalf("%d, %v", n, err)
			}
		}
	})
}

// What repeats takes next to nothing, however much of it there is, and whatever stands between.
func TestTranscriptOfWhatRepeats(t *testing.T) {
	var all []said
	for i := range uint64(30_000) {
		for cell, n := range []uint64{i % 5 * 1000, 3 * i, i / 29_999, 0x7fff12345678} {
			all = append(all, said{cellOf(at1(cell), loadWord), n, 0})
		}
	}
	coded := written(slices.Clone(all))
	if most := 1000; len(coded) > most {
		t.Errorf("%d bytes, more than %d", len(coded), most)
	}
	p := readLog(&reader{rest: coded})
	for i, s := range all {
		if n := p.said.number(s.in, s.about); n != s.number {
			t.Fatalf("number %d is %d, want %d", i, n, s.number)
		}
	}
}

// A number that was said at other instructions takes little where it is said again: it is that one
// as soon as its first bytes say so.
func TestTranscriptOfWhatWasSaidElsewhere(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var numbers [100]uint64
	for i := range numbers {
		numbers[i] = random.Uint64()
	}
	var all []said
	before, sayers := 0, 10
	for sayer := range sayers {
		before = len(written(slices.Clone(all)))
		for _, i := range random.Perm(len(numbers)) {
			all = append(all, said{cellOf(at1(sayer), loadWord), numbers[i], 0})
		}
	}
	coded := written(slices.Clone(all))
	if each := float64(len(coded)-before) / float64(len(numbers)); each > 3 {
		t.Errorf("%.1f bytes each, more than 3", each)
	}
	p := readLog(&reader{rest: coded})
	for i, s := range all {
		if n := p.said.number(s.in, s.about); n != s.number {
			t.Fatalf("number %d is %d, want %d", i, n, s.number)
		}
	}
}

func TestLogRefuses(t *testing.T) {
	number := binary.AppendUvarint
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"nothing":            {nil, "it is cut off"},
		"fewer loads":        {[]byte{1, 9, 0}, "it has 9 bytes of 2"},
		"fewer bytes":        {[]byte{1, 0, 1, 9, 0}, "it has 9 bytes of 2"},
		"more bytes":         {[]byte{1, 0, 1, 1, 0, 0}, "1 bytes too many"},
		"too many numbers":   {append(number([]byte{1, 0}, mostSaid+1), 0), "numbers of"},
		"half a load":        {[]byte{1, 1, 0x80, 0, 0}, "it is cut off"},
		"fewer than it says": {[]byte{1, 0, 0, 0}, "it says less than it should"},
	} {
		p := readLog(&reader{rest: c.data})
		p.said.number(cellOf(at1(0), loadCode), 0)
		if err := p.failed(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}

// Loads of which the model is sure say nothing, but for those that are otherwise.
func TestSureLoads(t *testing.T) {
	load := func() *Load {
		return &Load{Place: at1(0), Addr: 0x1000, Bytes: []byte{1, 2},
			Held: memory.Held{Held: 3, Known: 3, Confirmed: 3}}
	}
	var l Log
	l.Begin(Place{}, &Entry{})
	read := map[int][]byte{4: {9, 2}, 5: {9, 9}, 40: {1, 3}}
	for i := range 50 {
		if got, ok := read[i]; ok {
			l.Load(load(), got, machine.Confirmed)
		} else {
			l.Load(load(), []byte{1, 2}, machine.Confirmed)
		}
		if i == 44 { // and 45 to 49 are taken back
			l.Begin(Place{}, &Entry{})
		}
	}
	l.Load(load(), []byte{7, 7}, machine.Confirmed)
	l.Lose()
	l.keep()
	p := readLog(&reader{rest: l.append(nil, l.said)})
	p.symbols = 1
	p.Begin(Place{})
	for i := range 45 {
		got := load()
		k, isNew := p.Load(got)
		want, ok := read[i]
		if !ok {
			want = []byte{1, 2}
		}
		if k != machine.Confirmed || isNew != ok || !slices.Equal(got.Bytes, want) {
			t.Errorf("load %d is %v, %v, %d, want %v", i, got.Bytes, isNew, k, want)
		}
	}
	if lost, err := p.Begin(Place{}); !lost || err != nil || p.said.left != 0 {
		t.Errorf("lost %v, %v, and %d numbers are left", lost, err, p.said.left)
	}
}

func FuzzLog(f *testing.F) {
	f.Add(written(nil))
	var all []said
	for i := range uint64(40) {
		all = append(all, said{cellOf(at1(int(i%3)), loadWord), i, 0},
			said{cellOf(at1(0), loadCode), i % 5, 1})
	}
	f.Add(written(all))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1000 {
			return
		}
		p := readLog(&reader{rest: data})
		for i := 0; p.failed() == nil && i < 1000; i++ {
			p.said.number(cellOf(at1(i%3), loadWord), 0)
			p.said.number(cellOf(at1(i%3), loadCode), uint64(i))
		}
		if err := p.failed(); err == nil && p.said.left < 0 || strings.Contains(
			fmt.Sprint(err), "\n") {
			t.Errorf("%d numbers are left, %v", p.said.left, err)
		}
	})
}

// TestWork: what a log says counts, by how long it takes to read, once it is there to stay.
func TestWork(t *testing.T) {
	l, at := &Log{}, Place{}
	l.Begin(at, &Entry{})
	l.Used(at, 1, 5)
	if n := l.Work(); n != 0 {
		t.Errorf("%d before it stays", n)
	}
	l.Begin(at, &Entry{})
	if n := l.Work(); n != 1+16 {
		t.Errorf("%d of an empty entry and a number", n)
	}
	l.Used(at, 1, 5)
	l.Lose()
	l.Begin(at, &Entry{})
	if n := l.Work(); n != 1+16+1 {
		t.Errorf("%d, with an entry whose stretch was taken back", n)
	}
	l.Cut(NewWalker(NewCode(nil), nil, nil))
	if n := l.Work(); n != 0 {
		t.Errorf("%d of a segment that begins", n)
	}
}
