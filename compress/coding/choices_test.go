package coding

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// What is written is read, whatever the contexts are, as long as they are the same.
func TestChoices(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		numbers := rapid.SliceOf(rapid.OneOf(rapid.Uint64(), rapid.Uint64Range(0, 20))).Draw(t,
			"numbers")
		code := func(c *Choices) (got []uint64) {
			for i, n := range numbers {
				n = c.Number(i%Kinds, uint64(i%3), uint64(i%2), n)
				c.In([Contexts]uint64{n, 1, 2})
				got = append(got, n, uint64(c.Symbol(0, 3, uint32(n&7))))
			}
			return got
		}
		w := NewWriter([]byte("before"), uint64(len(numbers)))
		want := code(w)
		out := w.Finish()
		r := NewReader(out[len("before"):], uint64(len(numbers)))
		got := code(r)
		if short := r.Short(); r.Close() != 0 || short || fmt.Sprint(got) != fmt.Sprint(want) ||
			string(out[:6]) != "before" {
			t.Fatalf("got %d, want %d, of %x", got, want, out)
		}
		for i, n := range numbers {
			if want[2*i] != n || want[2*i+1] != n&7 {
				t.Fatalf("%d was written as %d, %d", n, want[2*i], want[2*i+1])
			}
		}
	})
}

func ExampleChoices() {
	w := NewWriter(nil, 1000)
	for i := range uint64(1000) {
		w.Number(0, 0, 0, i%2)
	}
	coded := w.Finish()
	r := NewReader(coded, 1000)
	sum := uint64(0)
	for range 1000 {
		sum += r.Number(0, 0, 0, 0)
	}
	fmt.Println(sum, r.Short(), r.Close(), len(coded) < 150)
	// Output: 500 false 0 true
}
