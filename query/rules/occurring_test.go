package rules

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"wpptrace/compress/wpp"
	"wpptrace/query/querytest"
)

// ofFour has threads of letters from a to d, whose symbols have the numbers 0 to 3. The routine a
// has two paths, which are a and b.
func ofFour(texts ...string) *wpp.Snapshot {
	s := querytest.Letters(append([]string{"abcd"}, texts...)...)
	s.Threads = s.Threads[1:]
	s.Routines[0].Paths = 2
	s.Symbols[1].Routine, s.Symbols[1].Path = 0, 1
	return s
}

// letters are those of symbols.
func letters(symbols []uint32) string {
	var b strings.Builder
	for _, sym := range slices.Compact(slices.Sorted(slices.Values(symbols))) {
		b.WriteByte('a' + byte(sym))
	}
	return b.String()
}

// The paths of a sequence are those that it names and that ran as a part of it.
func TestOccurring(t *testing.T) {
	for _, tt := range []struct {
		texts   []string
		pattern string
		gap     int
		want    string
	}{
		{[]string{"abbcabbc"}, "a", 0, "ab"},
		{[]string{"abbcabbc"}, "a#1", 0, "b"},
		{[]string{"abbcabbc"}, "c a", 0, "ac"},
		{[]string{"abbcabbc"}, "a c", 0, "bc"},
		{[]string{"abbcabbc"}, "a#0 c", 0, ""},
		{[]string{"abbc", "cb"}, "c * a", 0, ""},
		{[]string{"abbc", "cdb"}, "c * a", 0, "bc"},
		{[]string{"adbcdd"}, "a ** c", 0, "bc"},
		{[]string{"adbcdd"}, "a ** c", 2, "abc"},
		{[]string{"dab", "ddb"}, "d a", 0, "abd"},
	} {
		got, err := Occurring(ofFour(tt.texts...), tt.pattern, tt.gap)
		if err != nil || letters(got) != tt.want {
			t.Errorf("%s in %q: %s, %v, want %s", tt.pattern, tt.texts, letters(got), err, tt.want)
		}
	}
}

// So says brute force.
func TestOccurringByBruteForce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching("[abcd]{1,20}").Draw(t, "text")
		items := rapid.StringMatching("[acd.]{1,3}[acd]").Draw(t, "items")
		var want []uint32
		for at := range max(len(text)-len(items)+1, 0) {
			var part []uint32
			isMatch := true
			for i, item := range items {
				c := rune(text[at+i])
				isMatch = isMatch && (item == '.' || item == c || item == 'a' && c == 'b')
				if item != '.' {
					part = append(part, uint32(c-'a'))
				}
			}
			if isMatch {
				want = append(want, part...)
			}
		}
		pattern := strings.ReplaceAll(strings.Join(strings.Split(items, ""), " "), ".", "*")
		got, err := Occurring(ofFour(text), pattern, 0)
		if err != nil || letters(got) != letters(want) {
			t.Fatalf("%s in %s: %s, %v, not %s", pattern, text, letters(got), err, letters(want))
		}
	})
}
