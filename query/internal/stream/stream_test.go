package stream

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"wpptrace/query/querytest"
)

func TestCursorEqualsExpansion(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := querytest.DrawSnapshot(t)
		g, text := s.Threads[0].Grammar, querytest.Streams(s)[0]
		c := New(g)
		for range 20 {
			at := rapid.IntRange(0, len(text)+2).Draw(t, "position")
			c.Seek(uint64(at))
			at = min(at, len(text))
			for range rapid.IntRange(0, 20).Draw(t, "steps") {
				if c.Position() != uint64(at) {
					t.Fatalf("at %d, want %d", c.Position(), at)
				}
				step, next, symbol := c.Next, at+1, at
				if rapid.Bool().Draw(t, "back") {
					step, next, symbol = c.Previous, at-1, at-1
				}
				sym, ok := step()
				if ok != (symbol >= 0 && symbol < len(text)) || ok && sym != text[symbol] {
					t.Fatalf("symbol %d %v at %d of %v", sym, ok, symbol, text)
				}
				if ok {
					at = next
				}
			}
		}
		from, to := rapid.IntRange(0, len(text)).Draw(t, "from"), rapid.IntRange(0,
			len(text)+2).Draw(t, "to")
		want := slices.Clone(text[from:max(from, min(to, len(text)))])
		if got := slices.Collect(Range(g, uint64(from), uint64(to), false)); !slices.Equal(got,
			want) {
			t.Fatalf("%d to %d: %v, want %v", from, to, got, want)
		}
		slices.Reverse(want)
		if got := slices.Collect(Range(g, uint64(from), uint64(to), true)); !slices.Equal(got,
			want) {
			t.Fatalf("%d to %d backward: %v, want %v", from, to, got, want)
		}
	})
}
