package streams

import (
	"fmt"
	"hash/crc32"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"wpptrace/compress/coding"
)

// drawStream draws a stream of some kind that programs have, or of none.
func drawStream(t *rapid.T) []uint64 {
	n := rapid.IntRange(0, 80).Draw(t, "length")
	of := rapid.SampledFrom([]*rapid.Generator[uint64]{rapid.Uint64(), rapid.Uint64Range(0, 3),
		rapid.Uint64Range(0, 255),
		rapid.SampledFrom([]uint64{0, 8, ^uint64(0), 1 << 63})}).Draw(t, "of")
	s := rapid.SliceOfN(of, n, n).Draw(t, "values")
	period := rapid.IntRange(1, 20).Draw(t, "period")
	switch rapid.IntRange(0, 3).Draw(t, "shape") {
	case 1: // repeats
		for i := period; i < n; i++ {
			s[i] = s[i-period]
		}
	case 2: // repeats its strides
		for i := period; i < n; i++ {
			s[i] = s[i-period]
		}
		for i := 1; i < n; i++ {
			s[i] += s[i-1]
		}
	}
	return s
}

// state is all that a form depends on. What lies behind the end of a stack is no part of it.
func state(f form) string {
	switch f := f.(type) {
	case *strides:
		return fmt.Sprintf("last %d, %s", f.last, state(f.form))
	case *fcm:
		return fmt.Sprintf("%s %v %s", sideState(&f.before, false), f.window.values[:f.window.size],
			sideState(&f.after, true))
	case *lastN:
		var ranks []int
		for i := range f.ranks.size {
			ranks = append(ranks, f.ranks.at(i))
		}
		return fmt.Sprintf("%v %v|%v %v|%v", f.recent.values[:f.recent.size], ranks[:f.at],
			ranks[f.at:], f.misses[:f.missed], f.misses[f.missed:])
	}
	panic("no form")
}

// sideState prints the entries of a side in the stream's order, and the table: T for a value that
// was predicted, F and what the table had before for another.
func sideState(s *side, after bool) string {
	var entries []string
	hits, misses := s.hits, s.misses
	for hits.size > 0 {
		if hits.pop() {
			entries = append(entries, "T")
			continue
		}
		entries = append(entries, fmt.Sprintf("F%d", misses[len(misses)-1]))
		misses = misses[:len(misses)-1]
	}
	if !after {
		slices.Reverse(entries)
	}
	return fmt.Sprintf("%v %v", entries, s.table)
}

// Forward and then backward gives the same states, from any place to any other.
func TestBothWays(t *testing.T) {
	for number, m := range methods {
		t.Run(fmt.Sprint(number), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				values := drawStream(t)
				f := m.form(rapid.IntRange(0, 300).Draw(t, "contexts"))
				for _, v := range values {
					f.add(v)
				}
				states := make([]string, len(values)+1)
				states[len(values)] = state(f)
				for i := len(values) - 1; i >= 0; i-- {
					if v := f.previous(); v != values[i] {
						t.Fatalf("value %d backward is %d, want %d", i, v, values[i])
					}
					states[i] = state(f)
				}
				at := 0
				for _, to := range rapid.SliceOfN(rapid.IntRange(0, len(values)), 1, 5).Draw(t,
					"places") {
					for ; at < to; at++ {
						if v := f.next(); v != values[at] {
							t.Fatalf("value %d forward is %d, want %d", at, v, values[at])
						}
						if got := state(f); got != states[at+1] {
							t.Fatalf("at %d: %s, was %s", at+1, got, states[at+1])
						}
					}
					for ; at > to; at-- {
						if v := f.previous(); v != values[at-1] {
							t.Fatalf("value %d backward is %d, want %d", at-1, v, values[at-1])
						}
						if got := state(f); got != states[at-1] {
							t.Fatalf("at %d: %s, was %s", at-1, got, states[at-1])
						}
					}
				}
			})
		})
	}
}

// figure5 is figure 5 as it is printed: entries are kept by their place, and only those outside of
// the window count. Behind the stream are no values that extend it: the last window needs none.
// Where the figure compresses a value, its entry is that of the prediction, <F, BLTB[index]>.
type figure5 struct {
	n, i       int // the window is U[i+1..i+n]
	u          []uint64
	fr, bl     map[int]string
	frtb, bltb []uint64
}

func (f *figure5) index(from int) int {
	w := window{size: f.n}
	copy(w.values[:], f.u[from:from+f.n])
	return w.slot(len(f.frtb))
}

func uncompress(entry string, table []uint64, index int) uint64 {
	u := table[index]
	if entry != "T" {
		fmt.Sscanf(entry, "F%d", &table[index])
	}
	return u
}

func compress(u uint64, table []uint64, index int) string {
	if table[index] == u {
		return "T"
	}
	entry := fmt.Sprintf("F%d", table[index])
	table[index] = u
	return entry
}

func (f *figure5) backward() {
	f.u[f.i] = uncompress(f.fr[f.i], f.frtb, f.index(f.i+1))
	delete(f.fr, f.i)
	f.bl[f.i+f.n] = compress(f.u[f.i+f.n], f.bltb, f.index(f.i))
	f.i--
}

func (f *figure5) forward() {
	f.u[f.i+f.n+1] = uncompress(f.bl[f.i+f.n+1], f.bltb, f.index(f.i+1))
	delete(f.bl, f.i+f.n+1)
	f.fr[f.i+1] = compress(f.u[f.i+1], f.frtb, f.index(f.i+2))
	f.i++
}

func (f *figure5) String() string {
	entries := func(of map[int]string) []string {
		list := []string{}
		for i := range f.u {
			if e, ok := of[i]; ok {
				list = append(list, e)
			}
		}
		return list
	}
	return fmt.Sprintf("%v %v %v %v %v", entries(f.fr), f.frtb, f.u[f.i+1:f.i+f.n+1],
		entries(f.bl), f.bltb)
}

// An FCM goes through the states that the text of figure 5 goes through.
func TestFigure5(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := drawStream(t)
		n := rapid.SampledFrom([]int{1, 2, 4}).Draw(t, "context")
		got := newFCM(n, 8)
		// The stream is extended by n values at its beginning, and U[0] is none.
		want := &figure5{n: n, u: append(make([]uint64, n+1), values...), fr: map[int]string{},
			bl: map[int]string{}, frtb: make([]uint64, 8), bltb: make([]uint64, 8)}
		for _, v := range values { // what is appended lies behind the window for a moment
			got.add(v)
			want.bl[want.i+n+1] = compress(v, want.bltb, want.index(want.i+1))
			want.forward()
		}
		for range values {
			got.previous()
			want.backward()
			if got := state(got); got != want.String() {
				t.Fatalf("back at %d: %s, want %s", want.i, got, want)
			}
		}
		for range values {
			got.next()
			want.forward()
			if got := state(got); got != want.String() {
				t.Fatalf("at %d: %s, want %s", want.i, got, want)
			}
		}
	})
}

// statesOf is the states of a form at its beginning and behind each value.
func statesOf(f form, values ...uint64) string {
	for _, v := range values {
		f.add(v)
	}
	for range values {
		f.previous()
	}
	states := []string{state(f)}
	for range values {
		f.next()
		states = append(states, state(f))
	}
	return strings.Join(states, "\n")
}

// The states of figure 6 are lost in the text. These were found by hand: a context of one value,
// tables of four slots, of which 0 and 3 have the first, 2 the second and 1 the third.
func TestStatesOfFCM(t *testing.T) {
	want := `
[] [0 0 0 0] [0] [F0 T F3 F0 F0] [1 1 2 0]
[T] [0 0 0 0] [1] [T F3 F0 F0] [0 1 2 0]
[T F0] [0 1 0 0] [2] [F3 F0 F0] [0 1 2 0]
[T F0 F0] [0 1 2 0] [1] [F0 F0] [0 3 2 0]
[T F0 F0 T] [0 1 2 0] [2] [F0] [0 3 0 0]
[T F0 F0 T F0] [2 1 2 0] [3] [] [0 0 0 0]`
	if got := statesOf(newFCM(1, 4), 1, 2, 1, 2, 3); "\n"+got != want {
		t.Errorf("got\n%s\nwant%s", got, want)
	}
}

// So are those of figure 7. These were found by hand, as well: the three values that were used
// last, the ranks on both sides of the place, what was pushed out before it and what comes behind
// it.
func TestStatesOfLastN(t *testing.T) {
	want := `
[0 0 0] []|[3 3 1 0 3 3 3] []|[5 6 7 8 6]
[5 0 0] [3]|[3 1 0 3 3 3] [0]|[6 7 8 6]
[6 5 0] [3 3]|[1 0 3 3 3] [0 0]|[7 8 6]
[5 6 0] [3 3 1]|[0 3 3 3] [0 0]|[7 8 6]
[5 6 0] [3 3 1 0]|[3 3 3] [0 0]|[7 8 6]
[7 5 6] [3 3 1 0 3]|[3 3] [0 0 0]|[8 6]
[8 7 5] [3 3 1 0 3 3]|[3] [0 0 0 6]|[6]
[6 8 7] [3 3 1 0 3 3 3]|[] [0 0 0 6 5]|[]`
	if got := statesOf(newLastN(3), 5, 6, 5, 5, 7, 8, 6); "\n"+got != want {
		t.Errorf("got\n%s\nwant%s", got, want)
	}
}

func checkSet(t interface{ Fatalf(string, ...any) }, set ...[]uint64) {
	most := 0
	for _, s := range set {
		most += len(s) + 1
	}
	cursors, err := Open(Append(nil, set...), uint64(most))
	if err != nil || len(cursors) != len(set) {
		t.Fatalf("%d streams come back as %d: %v", len(set), len(cursors), err)
	}
	for i, c := range cursors {
		if got := rest(c); !slices.Equal(got, set[i]) {
			t.Fatalf("stream %d of %v came back as %v", i, set[i], got)
		}
	}
}

func rest(c *Cursor) (values []uint64) {
	for v, ok := c.Next(); ok; v, ok = c.Next() {
		values = append(values, v)
	}
	return values
}

func TestSetComesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		checkSet(t, rapid.SliceOfN(rapid.Custom(drawStream), 0, 6).Draw(t, "set")...)
	})
}

func TestCursor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := drawStream(t)
		cursors, err := Open(Append(nil, values), 1000)
		if err != nil {
			t.Fatal(err)
		}
		c := cursors[0]
		if c.Len() != uint64(len(values)) || c.Position() != 0 {
			t.Fatalf("%d values, at %d", c.Len(), c.Position())
		}
		at := 0
		t.Repeat(map[string]func(*rapid.T){
			"next": func(t *rapid.T) {
				v, ok := c.Next()
				if ok != (at < len(values)) || ok && v != values[at] {
					t.Fatalf("next of %d: %d, %v", at, v, ok)
				}
				at = min(at+1, len(values))
			},
			"previous": func(t *rapid.T) {
				v, ok := c.Previous()
				if ok != (at > 0) || ok && v != values[at-1] {
					t.Fatalf("previous of %d: %d, %v", at, v, ok)
				}
				at = max(at-1, 0)
			},
			"seek": func(t *rapid.T) {
				to := rapid.IntRange(0, len(values)+1).Draw(t, "to")
				c.Seek(uint64(to))
				at = min(to, len(values))
			},
			"": func(t *rapid.T) {
				if c.Position() != uint64(at) {
					t.Fatalf("at %d, want %d", c.Position(), at)
				}
			},
		})
	})
}

// kinds of streams, each of which one method or another is good at.
func kinds(n int) map[string][]uint64 {
	var random *rand.Rand
	of := map[string]func(i int) uint64{
		"constant":  func(int) uint64 { return 42 },
		"counts":    func(i int) uint64 { return uint64(i) * 8 },
		"rows":      func(i int) uint64 { return 0x7f0000001000 + uint64(i/10)*4096 + uint64(i%10)*8 },
		"two turns": func(i int) uint64 { return []uint64{7, 1 << 40}[i/3&1] },
		"period":    func(i int) uint64 { return uint64(i%37*i%37) * 0x10001 },
		"few":       func(int) uint64 { return uint64(random.IntN(4)) * 0x123456789 },
		"bytes":     func(int) uint64 { return uint64(random.IntN(256)) },
		"random":    func(int) uint64 { return random.Uint64() },
		"pointers": func(i int) uint64 {
			return 0x555555550000 + uint64(i*i%8191*48)
		},
		"few, then counts": func(i int) uint64 {
			if i < n/4 {
				return uint64(random.IntN(4)) << 20
			}
			return uint64(i) * 24
		},
	}
	streams := map[string][]uint64{}
	for name, f := range of {
		random = rand.New(rand.NewPCG(1, 2))
		for i := range n {
			streams[name] = append(streams[name], f(i))
		}
	}
	return streams
}

// The bytes are the format: a change that makes others makes files unreadable.
func TestFormatStaysAsItIs(t *testing.T) {
	var set [][]uint64
	streams := kinds(500)
	for _, name := range slices.Sorted(maps.Keys(streams)) {
		set = append(set, streams[name])
	}
	if coded := Append(nil, set...); len(coded) != 5551 ||
		crc32.ChecksumIEEE(coded) != 0xcb1f281a {
		t.Errorf("%d bytes, checksum %#x", len(coded), crc32.ChecksumIEEE(coded))
	}
}

func TestOpenRefuses(t *testing.T) {
	coded := Append(nil, []uint64{1, 2, 3}, []uint64{1 << 63})
	declaring := func(streams, values byte) []byte {
		return append([]byte{streams, values}, coded[2:]...)
	}
	for name, c := range map[string]struct {
		coded []byte
		want  string
	}{
		"nothing":       {nil, "set of streams ends too early"},
		"one number":    {coded[:1], "set of streams ends too early"},
		"a byte less":   {coded[:len(coded)-1], "set of streams ends too early"},
		"a byte more":   {append(slices.Clone(coded), 0), "set of streams goes on behind its end"},
		"fewer streams": {declaring(1, 4), "set of streams has fewer values than it declares"},
		"fewer values":  {declaring(2, 3), "set of streams has more values than it declares"},
		"too many streams": {declaring(11, 4),
			"set of streams declares 11 streams and 4 values, more than 10"},
		"too many values": {declaring(2, 11),
			"set of streams declares 2 streams and 11 values, more than 10"},
	} {
		if _, err := Open(c.coded, 10); err == nil || err.Error() != c.want {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}

func TestOpenRefusesAMethod(t *testing.T) {
	w := coding.NewWriter([]byte{1, 1}, 1)
	w.Number(lengths, 0, 0, 1)
	h := headers{choices: w, lengths: [2]uint64{1, 0}}
	h.method(constant + 1)
	if _, err := Open(w.Finish(), 1); err == nil || err.Error() != "stream is of method 13 of 13" {
		t.Error(err)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(nil))
	for _, n := range []int{0, 1, 50} {
		f.Add(Append(nil, slices.Collect(maps.Values(kinds(n)))...))
	}
	f.Fuzz(func(t *testing.T, coded []byte) {
		cursors, err := Open(coded, 5000)
		if err != nil {
			return
		}
		var set [][]uint64
		for _, c := range cursors {
			set = append(set, rest(c))
			if uint64(len(set[len(set)-1])) != c.Len() || c.Position() != c.Len() {
				t.Fatalf("%d values of %d, at %d", len(set[len(set)-1]), c.Len(), c.Position())
			}
			c.Seek(0)
			if !slices.Equal(rest(c), set[len(set)-1]) {
				t.Fatal("the second reading gives others than the first")
			}
		}
		checkSet(t, set...)
	})
}

// A stream of pointers through records of 48 bytes, and one of numbers that come from anywhere.
func Example() {
	coded := Append(nil, []uint64{0x1000, 0x1030, 0x1060, 0x1090}, []uint64{7, 1, 8})
	set, err := Open(coded, 100)
	if err != nil {
		fmt.Println(err)
		return
	}
	pointers := set[0]
	pointers.Seek(2)
	next, _ := pointers.Next()
	again, _ := pointers.Previous()
	before, _ := pointers.Previous()
	fmt.Printf("%#x %#x %#x, then at %d of %d\n", next, again, before, pointers.Position(),
		pointers.Len())
	// Output: 0x1060 0x1060 0x1030, then at 1 of 4
}

func BenchmarkAppend(b *testing.B) {
	for name, values := range kinds(20_000) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				b.SetBytes(8 * int64(len(values)))
				b.ReportMetric(8*float64(len(Append(nil, values)))/float64(len(values)), "bits/value")
			}
		})
	}
}

func BenchmarkOpen(b *testing.B) {
	for name, values := range kinds(20_000) {
		b.Run(name, func(b *testing.B) {
			coded := Append(nil, values)
			for b.Loop() {
				b.SetBytes(8 * int64(len(values)))
				if _, err := Open(coded, 1<<20); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// A step forward and one backward.
func BenchmarkSteps(b *testing.B) {
	for name, values := range kinds(20_000) {
		b.Run(name, func(b *testing.B) {
			set, err := Open(Append(nil, values), 1<<20)
			if err != nil {
				b.Fatal(err)
			}
			c := set[0]
			for b.Loop() {
				c.Seek(c.Len())
				c.Seek(0)
			}
			b.ReportMetric(float64(b.Elapsed())/float64(b.N)/float64(2*len(values)), "ns/step")
		})
	}
}

// What is chosen takes 1 % more at most than the best single method does for the whole stream.
func TestSelection(t *testing.T) {
	for name, values := range kinds(3000) {
		best, of := 0, 0
		for m := range methods {
			if n := cost(m, values); best == 0 || n < best {
				best, of = n, m
			}
		}
		got := len(Append(nil, values))
		t.Logf("%-18s %6d bytes, best method %d: %d", name, got, of, best)
		if got > best+best/100+12 {
			t.Errorf("%s: %d bytes, of the best method %d", name, got, best)
		}
	}
}

// TestConstantStreams: they take no memory and no time, however long they are.
func TestConstantStreams(t *testing.T) {
	long := slices.Repeat([]uint64{1 << 40}, 1<<20)
	coded := Append(nil, long, []uint64{1, 2}, long[:leastConstant])
	set, err := Open(coded, 3)
	if err != nil {
		t.Fatal(err)
	}
	for i, n := range []uint64{1 << 20, 2, leastConstant} {
		if set[i].Len() != n || set[i].Position() != 0 {
			t.Errorf("stream %d has %d values, at %d", i, set[i].Len(), set[i].Position())
		}
	}
	set[0].Seek(5)
	if v, ok := set[0].Next(); v != 1<<40 || !ok {
		t.Error(v, ok)
	}
	if v, ok := set[0].Previous(); v != 1<<40 || !ok || set[0].Position() != 5 {
		t.Error(v, ok)
	}
}
