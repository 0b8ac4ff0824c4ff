package wet

import (
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"wpptrace/compress/wet/streams"
)

func cellAt(insn int) cell { return cellOf(Place{Routine: 1, Block: 2, Insn: insn}, loadWord) }

// drawSheet draws a sheet and the numbers of its cells, some of which are kept in a copy before
// others follow, or taken back.
func drawSheet(t *rapid.T) (s *sheet, want map[cell][]uint64) {
	s, want = &sheet{}, map[cell][]uint64{}
	open := map[cell][]uint64{}
	for range rapid.IntRange(0, 60).Draw(t, "steps") {
		switch rapid.IntRange(0, 9).Draw(t, "step") {
		case 0:
			s.keep()
			for in, numbers := range open {
				want[in] = append(want[in], numbers...)
			}
			clear(open)
		case 1:
			s.takeBack()
			clear(open)
		case 2: // what a copy keeps is its own
			c := s.clone()
			c.say(cellAt(0), 99)
			c.keep()
		default:
			in := cellAt(rapid.IntRange(0, 3).Draw(t, "instruction"))
			n := rapid.Uint64Range(0, 5).Draw(t, "number")
			s.say(in, n)
			open[in] = append(open[in], n)
		}
	}
	return s, want
}

func TestSheet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, want := drawSheet(t)
		r := &reader{rest: s.append(nil)}
		x := readSheet(r)
		if x.err != nil || r.end() != nil {
			t.Fatal(x.err, r.end())
		}
		if len(x.of) != len(want) {
			t.Fatalf("%d streams, want %d", len(x.of), len(want))
		}
		for in, numbers := range want {
			var got []uint64
			for x.has(in) {
				got = append(got, x.number(in))
			}
			if !slices.Equal(got, numbers) {
				t.Fatalf("%+v has %d, want %d", in, got, numbers)
			}
		}
	})
}

// TestSheetInParts: however many numbers a sheet has, each cell has its own.
func TestSheetInParts(t *testing.T) {
	for parts := range mostParts + 2 {
		s := &sheet{}
		for i := range parts*partNumbers + 3 {
			s.say(cellAt(i%7), uint64(i))
		}
		s.keep()
		data := s.append(nil)
		if want := min(parts+1, mostParts); int(data[0]) != want {
			t.Errorf("%d parts, want %d", data[0], want)
		}
		r := &reader{rest: data}
		x := readSheet(r)
		if x.err != nil || r.end() != nil || len(x.of) != min(7, parts*partNumbers+3) {
			t.Fatal(x.err, r.end(), len(x.of))
		}
		for i := range parts*partNumbers + 3 {
			if n := x.number(cellAt(i % 7)); n != uint64(i) {
				t.Fatalf("%d, want %d", n, i)
			}
		}
	}
}

func TestSheetRefuses(t *testing.T) {
	set := func(s ...[]uint64) []byte {
		coded := streams.Append(nil, s...)
		return append(binary.AppendUvarint([]byte{1}, uint64(len(coded))), coded...)
	}
	one, two := []uint64{1}, []uint64{1, 1}
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"nothing":     {nil, "it is cut off"},
		"fewer bytes": {[]byte{1, 9, 0}, "it has 9 bytes of"},
		"more parts":  {[]byte{9, 0}, "it has 9 parts of 4"},
		"no columns":  {set(one), "it has no columns"},
		"a short column": {set(one, one, nil, one, one),
			"it has columns of 0 numbers for 1 streams"},
		"no such field": {set(one, one, one, []uint64{uint64(fields)}, one), "field 88"},
		"a cell twice":  {set(two, two, two, two, one, one), "or twice"},
		"a damaged set": {[]byte{1, 3, 4, 9, 1}, "set of streams"},
		"too many values": {[]byte{1, 5, 4, 0xff, 0xff, 0xff, 0x7f},
			"set of streams declares 4 streams and 268435455 values, more than"},
	} {
		if x := readSheet(&reader{rest: c.data}); x.err == nil ||
			!strings.Contains(x.err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, x.err, c.want)
		}
	}
}

// What a sheet does not have is an error, once, and 0.
func TestSheetHasNoMore(t *testing.T) {
	s := &sheet{}
	s.say(cellAt(0), 7)
	s.keep()
	x := readSheet(&reader{rest: s.append(nil)})
	if n := x.number(cellAt(0)); n != 7 || x.err != nil {
		t.Errorf("%d, %v", n, x.err)
	}
	for _, in := range []cell{cellAt(0), cellAt(1)} {
		if n := x.number(in); n != 0 || x.err == nil ||
			x.err.Error() != "it says less than it should" {
			t.Errorf("%d, %v", n, x.err)
		}
	}
}

func FuzzSheet(f *testing.F) {
	s := &sheet{}
	f.Add(s.append(nil))
	for i := range uint64(40) {
		s.say(cellAt(int(i%3)), i)
	}
	s.keep()
	f.Add(s.append(nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1000 {
			return
		}
		x := readSheet(&reader{rest: data})
		for in := range x.of {
			for x.has(in) {
				x.number(in)
			}
		}
	})
}

// What repeats takes next to no bytes, and was taken for damaged when there was much of it.
func TestSheetOfWhatRepeats(t *testing.T) {
	const n = 300_000
	s := &sheet{}
	for i := range uint64(n) {
		s.say(cellAt(1), i%5*1000)
		s.say(cellAt(2), 3*i)
		s.say(cellAt(3), i/(n-1))
	}
	s.keep()
	x := readSheet(&reader{rest: s.append(nil)})
	for i := range uint64(n) {
		a, b, c := x.number(cellAt(1)), x.number(cellAt(2)), x.number(cellAt(3))
		if x.err != nil || a != i%5*1000 || b != 3*i || c != i/(n-1) {
			t.Fatalf("%d, %d, %d are the numbers %d, %v", a, b, c, i, x.err)
		}
	}
}
