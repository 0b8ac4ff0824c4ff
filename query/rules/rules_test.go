package rules

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"wpptrace/compress/ops"
	"wpptrace/compress/wpp"
	"wpptrace/query/querytest"
)

func TestRules(t *testing.T) {
	for _, tt := range []struct {
		text, rule string
		violations uint64
		at         uint64 // of the first
		stretch    string
	}{
		{"xaxb", "a before b", 0, 0, ""},
		{"xbaxb", "a before b", 1, 1, "b"},
		{"xbbax", "a before b", 2, 1, "b"},
		{"axbaxxb", "every a followed by b", 0, 0, ""},
		{"axbaxx", "every a followed by b", 1, 3, "axx"},
		{"aaxbcac", "every a followed by b before c", 1, 5, "ac"},
		{"axa", "every a followed by b before c", 0, 0, ""},
		{"acaxc", "every a followed by b before c", 2, 0, "ac"},
		{"aabxb", "never a after b", 0, 0, ""},
		{"abxbxaa", "never a after b", 2, 3, "bxa"},
		{"axaxbxbx", "a and b balanced", 0, 0, ""},
		{"abxbab", "a and b balanced", 1, 3, "b"},
		{"xaxab", "a and b balanced", 1, 1, "a"},
		{"aabab", "a and b balanced", 1, 0, "a"},
		{"aabb", "a and b balanced within 1", 1, 1, "a"},
		{"aabbb", "a and b balanced within 1", 2, 1, "a"},
		{"xaxxbxa", "never a !b* b", 1, 1, "axxb"},
		{"xaxxcxb", "never a . b", 0, 0, ""},
		{"xaxb", "never a . b", 1, 1, "axb"},
		{"ax#b", "never a .* b", 0, 0, ""},
		{"axxbxaxb", "always (a b)*", 0, 0, ""},
		{"axxbxxxbab", "always (a b)*", 1, 7, "b"},
		{"x#axb", "always a b? c", 0, 0, ""},
		{"abab", "never (a b){2}", 1, 0, "abab"},
		{"abb", "never a() ('b' b) | c", 1, 0, "abb"},
	} {
		t.Run(tt.text+" "+tt.rule, func(t *testing.T) {
			r, err := Check(querytest.Letters(tt.text, "xabc"), []string{tt.rule}, 100)
			s := querytest.Letters(tt.text, "xabc")
			if err != nil {
				t.Fatal(err)
			}
			got := r.Rules[0]
			if got.Violations != tt.violations || got.Kept != (tt.violations == 0) ||
				len(got.Witnesses) != min(1, int(tt.violations)) {
				t.Fatalf("%+v", got)
			}
			if tt.violations == 0 {
				return
			}
			w := got.Witnesses[0]
			around := querytest.Spell(s, w.Before) + "|" + querytest.Spell(s,
				w.Symbols) + "|" + querytest.Spell(s, w.After)
			from, to := int(tt.at), int(tt.at)+len(tt.stretch)
			want := tt.text[max(0, from-3):from] + "|" + tt.stretch + "|" +
				tt.text[to:min(len(tt.text), to+3)]
			if w.Position != tt.at || w.Length != uint64(len(tt.stretch)) || around != want {
				t.Errorf("%d at %d, %s, want %s", w.Length, w.Position, around, want)
			}
		})
	}
}

// A verdictTest is what a thread has to do with a rule, and where it breaks it first, or leaves it
// open.
type verdictTest struct {
	text, rule       string
	violations, open uint64
	at               uint64
	why              string // "": it keeps the rule
}

func (tt *verdictTest) check(t *testing.T, s *wpp.Snapshot) {
	t.Helper()
	r, err := Check(s, []string{tt.rule}, 100)
	if err != nil {
		t.Fatal(err)
	}
	got := r.Rules[0]
	if got.Violations != tt.violations || got.Open != tt.open || got.Kept != (tt.why == "") {
		t.Errorf("%s in %s: %+v", tt.rule, tt.text, got)
	}
	if tt.why != "" && (len(got.Witnesses) != 1 || got.Witnesses[0].Position != tt.at ||
		got.Witnesses[0].Why != tt.why) {
		t.Errorf("%s in %s: %+v, want %d: %s", tt.rule, tt.text, got.Witnesses, tt.at, tt.why)
	}
}

// TestOpenAtTheEnd: what was due where the record of a thread ends was a violation, also of one
// that ran on.
func TestOpenAtTheEnd(t *testing.T) {
	for _, tt := range []verdictTest{
		{"xaxx", "every a followed by b", 0, 1, 1, "not followed yet where the record ends"},
		{"xaxbx", "every a followed by b", 0, 0, 0, ""},
		{"xaxb#ax#", "every a followed by b", 0, 1, 5, "not followed yet where the record ends"},
		{"xaxc", "every a followed by b before c", 1, 0, 1, "not followed before"},
		{"axaab", "a and b balanced", 0, 2, 0, "not followed yet where the record ends"},
		{"baa", "a and b balanced", 1, 2, 0, "without one before"},
		{"aa", "a and b balanced within 1", 1, 2, 1, "more than 1 deep"},
		{"axx", "never a b", 0, 0, 0, ""},
	} {
		s := querytest.Letters(tt.text, "xabc")
		s.Threads[0].Ended = false
		tt.check(t, s)
	}
}

// TestOpenAtTheBeginning: what may have run before the record of a thread begins was taken for what
// has not.
func TestOpenAtTheBeginning(t *testing.T) {
	for _, tt := range []struct {
		text, rule       string
		violations, open uint64
		why              string
	}{
		{"#bab", "a before b", 0, 1, "ran before in what is recorded"},
		{"bab", "a before b", 1, 0, "ran before"},
		{"b#ab", "a before b", 1, 0, "ran before"},
		{"#xbb", "a and b balanced", 0, 2, "without one before in what is recorded"},
		{"#baa", "a and b balanced within 1", 1, 3, "more than 1 deep"},
		{"#xab", "always x (a b)*", 0, 0, ""},
		{"#ba", "always (a b)*", 0, 1, "out of order in what is recorded"},
		{"#ba", "never a after b", 1, 0, "ran after"},
	} {
		s := querytest.Letters(tt.text, "xabc")
		s.Threads[0].Ended = false
		s.Symbols[querytest.Letter(s, '#')].Mark = ops.Resume
		r, err := Check(s, []string{tt.rule}, 100)
		if err != nil {
			t.Fatal(err)
		}
		got := r.Rules[0]
		if got.Violations != tt.violations || got.Open != tt.open || got.Kept != (tt.why == "") ||
			tt.why != "" && got.Witnesses[0].Why != tt.why {
			t.Errorf("%s in %s: %+v", tt.rule, tt.text, got)
		}
	}
}

func TestRulesRefuse(t *testing.T) {
	for rule, want := range map[string]string{
		"":                                       "it is none of",
		"a then b":                               "it is none of",
		"a before q":                             "no routine q",
		"a and a balanced":                       "a path is both",
		"a and b balanced within 1000000001":     "1000000001 is no depth up to 1000000000",
		"never a*":                               "it matches where nothing ran",
		"never (a":                               "no ) for a (",
		"never a)":                               `")" has no beginning`,
		"never a |":                              "a path is missing",
		"never *":                                "a path is missing",
		"never !":                                "no name behind '!'",
		"never a{x}":                             `"x" is no number`,
		"never a{2,1}":                           "{2,1} is no range",
		"never a{2":                              "no } for a {",
		"never a{":                               "no number behind {",
		"never a{513}":                           "more than 512 paths",
		"never b ((a{0}){999999999}){999999999}": "more than 512 paths",
		"never " + strings.Repeat("(", 1000):     "more than 100 parentheses",
	} {
		if _, err := Check(querytest.Letters("abc"), []string{rule}); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", rule, err, want)
		}
		depends := want == "no routine q" || want == "a path is both"
		if err := Validate(rule); (err == nil) != depends {
			t.Errorf("%s, whatever the snapshot: %v", rule, err)
		}
	}
	if _, err := Check(querytest.Letters("abc"), nil, 5); err == nil {
		t.Error("thread 5 is checked")
	}
}

// TestRulesAcrossGaps: what may have been kept in a gap, as between windows, was a violation.
func TestRulesAcrossGaps(t *testing.T) {
	for _, tt := range []verdictTest{
		{"xb#ab", "a before b", 1, 0, 1, "ran before"},
		{"x#bab", "a before b", 0, 1, 2, "ran before in what is recorded"},
		{"ax#x", "every a followed by b", 0, 1, 0, "not followed in what is recorded"},
		{"ab#ax", "every a followed by b", 1, 0, 3, "not followed up to the end"},
		{"ax#cx", "every a followed by b before c", 0, 1, 0,
			"not followed before in what is recorded"},
		{"a#cxacac", "every a followed by b before c", 2, 1, 4, "not followed before"},
		{"b#xa", "never a after b", 1, 0, 0, "ran after"},
		{"a#axb#b", "a and b balanced within 1", 0, 1, 2, "more than 1 deep in what is recorded"},
		{"a#bb", "a and b balanced", 0, 1, 3, "without one before in what is recorded"},
		{"ab#a", "a and b balanced", 0, 1, 3, "not followed in what is recorded"},
		{"ab#ab", "a and b balanced", 0, 0, 0, ""},
		{"ab#b", "always (a b)*", 0, 1, 3, "out of order in what is recorded"},
		{"abb#a", "always (a b)*", 1, 0, 2, "out of order"},
	} {
		tt.check(t, querytest.Letters(tt.text, "xabc"))
	}
}

// bruteRule counts the violations in a text of letters and what is open behind it, and says where
// the first ends. isGap says which characters are gaps.
func bruteRule(kind, text string, limit int, ended, midway bool,
	isGap func(c rune) bool) (violations, open, first int) {
	broken, left := -1, -1
	gap := -1 // the last one so far
	note := func(i int) {
		if violations++; broken < 0 {
			broken = i
		}
	}
	leave := func(i int) {
		if open++; left < 0 {
			left = i
		}
	}
	any := kind == "balanced" && strings.ContainsFunc(text, isGap)
	noteLone := func(i int) {
		if midway || any || gap >= 0 {
			leave(i)
			return
		}
		note(i)
	}
	noteDue := func(i int) {
		if ended && !any && gap < i {
			note(i)
			return
		}
		leave(i)
	}
	seenA, seenB, due, depth, deep := false, false, -1, 0, false
	var pending []int
	for i, c := range text {
		if isGap(c) {
			gap = i
		}
		switch kind {
		case "before":
			if c == 'b' && !seenA {
				noteLone(i)
			}
		case "followed":
			if c == 'b' {
				due = -1
			}
		case "followed before":
			switch {
			case c == 'c' && due >= 0 && gap > due:
				leave(i)
			case c == 'c' && due >= 0:
				note(i)
			}
			if c == 'b' || c == 'c' {
				due = -1
			}
		case "never":
			if c == 'a' && seenB {
				note(i)
			}
		case "balanced":
			switch {
			case c == 'a':
				pending = append(pending, i)
			case c == 'b' && len(pending) == 0:
				noteLone(i)
			case c == 'b':
				pending = pending[:len(pending)-1]
			}
			if depth = len(pending); depth > limit && !deep {
				deep = true
				if any {
					leave(i)
				} else {
					note(i)
				}
			}
		}
		if c == 'a' {
			seenA, due = true, i
		}
		seenB = seenB || c == 'b'
	}
	switch {
	case kind == "followed" && due >= 0:
		noteDue(due)
	case kind == "balanced":
		for _, i := range pending {
			noteDue(i)
		}
	}
	if broken < 0 {
		broken = left
	}
	return violations, open, broken
}

func TestRulesEqualBruteForce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := querytest.DrawSnapshot(t)
		for _, c := range "abc" {
			querytest.Letter(s, c)
		}
		checkRules(t, s, rapid.IntRange(0, 4).Draw(t, "limit"))
	})
}

// checkRules compares the verdicts on rules of a, b and c with those of bruteRule.
func checkRules(t querytest.Fataler, s *wpp.Snapshot, limit int) {
	for kind, rule := range map[string]string{
		"before": "a before b", "followed": "every a followed by b",
		"followed before": "every a followed by b before c",
		"never":           "never a after b", "balanced": fmt.Sprint("a and b balanced within ",
			limit),
	} {
		got, err := Check(s, []string{rule})
		if err != nil {
			t.Fatal(err)
		}
		total, totalOpen, witnesses := 0, 0, got.Rules[0].Witnesses
		for i, stream := range querytest.Streams(s) {
			violations, open, first := bruteRule(kind, querytest.Spell(s, stream), limit,
				s.Threads[i].Ended, beginsMidway(s, &s.Threads[i]),
				func(c rune) bool {
					return c < 'a' && s.Symbols[querytest.Letter(s, c)].Mark == ops.Gap
				})
			total += violations
			totalOpen += open
			if violations+open == 0 {
				continue
			}
			w := witnesses[0]
			witnesses = witnesses[1:]
			end := int(w.Position + w.Length - 1)
			if kind == "followed" {
				end = int(w.Position)
			}
			if w.TID != 100+i || end != first {
				t.Fatalf("%s in %s: %+v, want %d", rule, querytest.Spell(s, stream), w, first)
			}
		}
		if r := got.Rules[0]; r.Violations+r.Unmet != uint64(total) ||
			r.Unmet > 0 && (r.Violations > 0 || r.NeverRan == nil) || r.Open != uint64(totalOpen) ||
			r.Kept != (total+totalOpen == 0) || len(witnesses) > 0 {
			t.Fatalf("%s: %+v, want %d and %d open", rule, r, total, totalOpen)
		}
	}
}

// TestRegexEqualsRegexp compares regular expressions with those of the standard library, end by
// end.
func TestRegexEqualsRegexp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := querytest.DrawSnapshot(t)
		for _, c := range "abc" {
			querytest.Letter(s, c)
		}
		ours, theirs := drawRegex(t, 3)
		matches := regexp.MustCompile("^(?:" + theirs + ")$")
		got, err := Check(s, []string{"never a " + ours})
		if err != nil {
			t.Fatal(err)
		}
		var total uint64
		var want []Occurrence
		for i, stream := range querytest.Streams(s) {
			text, before := querytest.Spell(s, stream), total
			for end := range text {
				for begin := end; begin >= 0; begin-- {
					if text[begin] == 'a' && matches.MatchString(text[begin+1:end+1]) {
						if total++; total == before+1 {
							want = append(want,
								Occurrence{TID: 100 + i, Position: uint64(begin),
									Length: uint64(end - begin + 1)})
						}
						break
					}
				}
			}
		}
		if got.Rules[0].Violations != total || len(want) != len(got.Rules[0].Witnesses) {
			t.Fatalf("%s: %+v, want %d: %+v", ours, got.Rules[0], total, want)
		}
		for i, w := range got.Rules[0].Witnesses {
			if w.TID != want[i].TID || w.Position != want[i].Position ||
				w.Length != want[i].Length {
				t.Fatalf("%s: %+v, want %+v", ours, w, want[i])
			}
		}
	})
}

// drawRegex draws a regular expression in both notations.
func drawRegex(t *rapid.T, depth int) (ours, theirs string) {
	if depth == 0 || rapid.Bool().Draw(t, "leaf") {
		leaf := rapid.SampledFrom([][2]string{{"a", "a"}, {"b", "b"}, {"c", "c"}, {".", "[a-z]"},
			{"!a", "[b-z]"}}).Draw(t, "letter")
		return leaf[0], leaf[1]
	}
	a, a2 := drawRegex(t, depth-1)
	switch rapid.IntRange(0, 2).Draw(t, "operator") {
	case 0:
		b, b2 := drawRegex(t, depth-1)
		return "(" + a + " | " + b + ")", "(?:" + a2 + "|" + b2 + ")"
	case 1:
		b, b2 := drawRegex(t, depth-1)
		return a + " " + b, a2 + b2
	}
	sign := rapid.SampledFrom([]string{"*", "+", "?", "{2}", "{1,3}", "{0,2}"}).Draw(t, "sign")
	return "(" + a + ")" + sign, "(?:" + a2 + ")" + sign
}

// TestRulesInEndless checks 2^60 paths, and a depth that rises as far.
func TestRulesInEndless(t *testing.T) {
	s := querytest.Letters("ab")
	rule := wpp.RuleSymbol
	double := func(first, last int, sym uint32) (bodies [][]uint32) {
		for r := first; r < last; r++ {
			bodies = append(bodies, slices.Repeat([]uint32{rule(r + 1)}, 2))
		}
		return append(bodies, []uint32{sym})
	}
	bodies := slices.Concat([][]uint32{{rule(1), rule(62)}}, double(1, 61, 0), double(62, 122, 1))
	g, err := wpp.NewGrammar(bodies)
	if err != nil {
		t.Fatal(err)
	}
	s.Threads[0].Grammar = g
	got, err := Check(s, []string{"a and b balanced", "b before a", "a before b", "never a b",
		"never b after a", "always a* b*"})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct{ violations, at uint64 }{{1, mostDepth}, {1 << 60, 0}, {0, 0},
		{1, 1<<60 - 1}, {1 << 60, 1<<60 - 1}, {0, 0}} {
		r := got.Rules[i]
		if r.Violations != want.violations ||
			want.violations > 0 && r.Witnesses[0].Position != want.at {
			t.Errorf("%+v, want %+v", r, want)
		}
	}
	// A depth of 2^62 and more saturates, and is still too deep.
	if s.Threads[0].Grammar, err = wpp.NewGrammar(double(0, 70, 0)); err != nil {
		t.Fatal(err)
	}
	got, err = Check(s, []string{"a and b balanced", "every a followed by b"})
	if err != nil {
		t.Fatal(err)
	}
	if got.Rules[0].Witnesses[0].Position != mostDepth || got.Rules[1].Violations != 1 ||
		got.Rules[1].Witnesses[0].Position != math.MaxUint64 ||
		s.Threads[0].Grammar.Length(0) != math.MaxUint64 {
		t.Errorf("%+v", got)
	}
}

// tenStates are rules whose least automata have ten states and more. A trace meets few of those of
// the first, and all of the second's, which counts modulo ten.
var tenStates = []string{"never r1 (!r1)* r2 (!r2)* r3 (!r3)* r4 (!r4)* r5#1 r5#1 r5#1 r5#1 r5#1 " +
	"r5#2", "always (BUSIEST{10} LATEST?)*"}

func TestTenStates(t *testing.T) {
	s := querytest.PathsOfEight(47)
	for _, text := range tenStates {
		paths := newPathNames(s)
		r, err := parseRule(paths,
			strings.NewReplacer("BUSIEST", "r1", "LATEST", "r2#1").Replace(text))
		if err != nil {
			t.Fatal(err)
		}
		x, err := r.automaton(paths)
		if err != nil {
			t.Fatal(err)
		}
		if n := minimalStates(x, len(s.Symbols)); n < 10 {
			t.Errorf("%s: %d states in the minimal automaton", text, n)
		}
	}
}

// minimalStates is how many states of an automaton some continuation distinguishes (Moore 1956).
func minimalStates(x *automaton, symbols int) int {
	met, group := []uint32{x.start}, map[uint32]int{x.start: 0}
	for i := 0; i < len(met); i++ {
		for sym := range symbols {
			to, _ := x.next(met[i], uint32(sym))
			if _, ok := group[to]; !ok {
				group[to] = 0
				met = append(met, to)
			}
		}
	}
	for groups := 1; ; {
		number, next := map[string]int{}, map[uint32]int{}
		for _, from := range met {
			key := fmt.Sprint(group[from])
			for sym := range symbols {
				to, hit := x.next(from, uint32(sym))
				key += fmt.Sprint(" ", group[to], hit)
			}
			if _, ok := number[key]; !ok {
				number[key] = len(number)
			}
			next[from] = number[key]
		}
		if group = next; len(number) == groups {
			return groups
		}
		groups = len(number)
	}
}

// landmarks are the routine of most paths of a trace, and the path that ran first of all the
// latest.
func landmarks(s *wpp.Snapshot) *strings.Replacer {
	counts, met, latest := make([]int, len(s.Routines)), make([]bool, len(s.Symbols)), uint32(0)
	for sym := range s.Threads[0].Grammar.Expand(0) {
		counts[s.Symbols[sym].Routine]++
		if !met[sym] {
			met[sym], latest = true, sym
		}
	}
	busiest := s.Routines[slices.Index(counts, slices.Max(counts))].Name
	return strings.NewReplacer("BUSIEST", busiest, "LATEST",
		fmt.Sprintf("%s#%d", s.RoutineOf(latest).Name, s.Symbols[latest].Path))
}

func BenchmarkRules(b *testing.B) {
	names := make(map[*wpp.Snapshot]*strings.Replacer)
	for _, tr := range querytest.Traces() {
		names[tr.Packed] = landmarks(tr.Packed)
	}
	for _, text := range append(tenStates, "r1() before r2", "BUSIEST#0 and BUSIEST#1 balanced") {
		b.Run(strings.ReplaceAll(text[:min(len(text), 18)], " ", "-"), func(b *testing.B) {
			querytest.Compare(b, 5, func(s *wpp.Snapshot) uint64 {
				r, err := Check(s, []string{names[s].Replace(text)})
				if err != nil {
					b.Fatal(err)
				}
				return r.Rules[0].Violations
			}, func(s *wpp.Snapshot) uint64 {
				paths := newPathNames(s)
				r, err := parseRule(paths, names[s].Replace(text))
				if err != nil {
					b.Fatal(err)
				}
				if r.kind == balanced {
					return balanceExpanded(s, paths, r)
				}
				x, err := r.automaton(paths)
				if err != nil {
					b.Fatal(err)
				}
				return readExpanded(s, x)
			})
		})
	}
}

func balanceExpanded(s *wpp.Snapshot, a *pathNames, r *rule) (violations uint64) {
	depth, deep := uint64(0), uint64(0)
	for sym := range s.Threads[0].Grammar.Expand(0) {
		switch mask := a.mask[sym]; {
		case mask>>r.a&1 == 1:
			if depth++; depth > r.limit {
				deep = 1
			}
		case mask>>r.b&1 == 1 && depth == 0:
			violations++
		case mask>>r.b&1 == 1:
			depth--
		}
	}
	return violations + depth + deep
}

// TestNegativeRepetition: {3,-1} was taken for {3,}.
func TestNegativeRepetition(t *testing.T) {
	for _, text := range []string{"never a{3,-1}", "never a{-1}", "never a{-2,3}",
		"never a{99999999999}"} {
		if _, err := Check(querytest.Letters("aaaa"), []string{text}); err == nil ||
			!strings.Contains(err.Error(), "is no number") {
			t.Errorf("%s: %v", text, err)
		}
	}
}
