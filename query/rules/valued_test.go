package rules

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"wpptrace/compress/wet/machine"
	"wpptrace/query/internal/deeds"
	"wpptrace/query/querytest"
)

// TestCutCall: what is a call with values, and what is not, and where it ends.
func TestCutCall(t *testing.T) {
	for text, want := range map[string]string{
		"free(p) g":               "free(p) free 0 [{p 0  0 8}]",
		"free( p , 1)(g)":         "free( p , 1) free 0 [{p 0  0 8} { 1  1 8}]",
		"free(p!=0)*":             "free(p!=0) free 0 [{p 2  0 8}]",
		"f(_,<n:4)":               "f(_,<n:4) f 0 [{ 0  0 8} { 3 n 0 4}]",
		"f(0x10,-1)":              "f(0x10,-1) f 0 [{ 1  16 8} { 1  -1 8}]",
		"malloc()=p)":             "malloc()=p malloc 1 [] {p 0  0 8}",
		"malloc(n)=p!=0 x":        "malloc(n)=p!=0 malloc 1 [{n 0  0 8}] {p 2  0 8}",
		"parse()=-1":              "parse()=-1 parse 1 [] { 1  -1 8}",
		"parse()<0:4":             "parse()<0:4 parse 1 [] { 3  0 4}",
		"read(fd)>=n":             "read(fd)>=n read 1 [{fd 0  0 8}] { 6 n 0 8}",
		"'f(int)'(x)|g":           "'f(int)'(x) 'f(int)' 0 [{x 0  0 8}]",
		"use(p, 48)?":             "use(p, 48) use 2 [{p 0  0 8} { 1  48 8}]",
		"use(p,n)":                "use(p,n) use 2 [{p 0  0 8} {n 0  0 8}]",
		"f()":                     "",
		"f() g":                   "",
		"f (p)":                   "",
		"f(a b)":                  "",
		"f(!a)":                   "",
		"f(a|b)":                  "",
		"f(a":                     "",
		"f()!g":                   "",
		"f(p:3)":                  "refused",
		"f(99999999999999999999)": "refused",
		"f(p==1)":                 "refused",
		"f(p:3, q)":               "refused",
		"f(a, n>)":                "refused",
		"f()!=x:5":                "refused",
		"f(a::b)":                 "",
		"f() g(x=1)":              "",
		"f()|g::h":                "",
		"(p)":                     "",
		"'f'":                     "",
		"'f":                      "",
		"f()=":                    "refused",
		"f()=1x":                  "refused",
		"":                        "",
	} {
		got := ""
		c, err := cutCall(text)
		if err != nil {
			got = "refused"
		}
		if c != nil {
			got = fmt.Sprint(c.text, " ", c.name, " ", c.kind, " ", c.arguments)
			if c.kind == deeds.Returned {
				got += fmt.Sprint(" ", c.result)
			}
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// TestValuedRefused: what is wrong with a pattern with values is said in a line.
func TestValuedRefused(t *testing.T) {
	const isUse = "it is use(POINTER) or use(POINTER, BYTES), of names and numbers"
	for rule, want := range map[string]string{
		"free(p) before use(p)": `with values, it is one of "never REGEX", "never A after B", ` +
			`"every A followed by B [before C]"`,
		"never free(p) work": errNoCall.Error(),
		"never f(p:3)": "p:3 tests no value: NAME, NUMBER or _, or [NAME] and one of = != < > <= >= " +
			"with a NAME or NUMBER; behind it :1, :2, :4 or :8 for how many bytes it has",
		"never free(p) work#3": errNoCall.Error(),
		"never f(a,b,c,d,e,f,g)": "f(a,b,c,d,e,f,g): registers pass 6 arguments: " +
			"those behind them are not known",
		"never free(p) use(p>1)":        "use(p>1): " + isUse,
		"never free(p) use(p)=1":        "use(p)=1: " + isUse,
		"never f(p) use(p,n)":           "no call gives n a value",
		"never f(p>n)":                  "no call gives n a value",
		"never f(p)*":                   "it matches where nothing ran",
		"never f(p) !(g()|(h()))":       "'!(' takes names with '|' between",
		"never f(a,b,c,d,e) g(h,i,j,k)": "more than 8 names for values",
	} {
		want = fmt.Sprintf("rule %q: %s", rule, want)
		if err := Validate(rule); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// FuzzValued: whatever the text, a rule is read or refused, and what is cut as a call is its
// beginning.
func FuzzValued(f *testing.F) {
	for _, text := range []string{"never free(p!=0) !(malloc()=p|f())* use(p, 48)", "f(_,<n:4)=-1",
		"every 'a'(1) followed by b()=x before c(x)", "use(0x10)"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if c, _ := cutCall(text); c != nil && !strings.HasPrefix(text, c.text) {
			t.Errorf("%q is no beginning", c.text)
		}
		_ = Validate(text)
		_ = (&FindQuery{Pattern: text, First: 1}).Validate()
	})
}

// valuedPatterns are those that random deeds are read by.
var valuedPatterns = []string{
	"f(p) (!g()=p)* f(p)",
	"f(p) !g()=p* use(p)",
	"h(p!=0,n) !(g()=p|f(p))* use(p,n)",
	"g(n)=p .* use(p,n)",
	"f(p) f(p)",
	"f(p) . f(q) (!f(p))* h(q,p)",
	"(f(p)|h(_,p))+ g()=p",
	"f(p<2) .{0,3} h(p,>p)",
	"(!f(1))* use(1)",
	"f(p:1) (!g()=p:1)* h(_,p:1)",
}

func confirmed(n uint64) deeds.Value { return deeds.Value{Is: n, Known: machine.Confirmed} }

// A hidden deed is one of which it is said which of its values are not known.
func drawDeeds(t *rapid.T, routines []string) (full, partial []deeds.Deed) {
	routine := func(name string) int { return slices.Index(routines, name) }
	small := rapid.SampledFrom([]uint64{0, 1, 2, leastPointer, leastPointer + 1})
	n := rapid.IntRange(1, 14).Draw(t, "deeds")
	for i := range n {
		d := deeds.Deed{At: deeds.Place{Position: uint64(i)}}
		hides := rapid.IntRange(0, 5).Draw(t, "hides") == 0
		values := func(n int) {
			for k := range n {
				d.Arguments[k] = confirmed(small.Draw(t, "argument"))
			}
		}
		switch rapid.IntRange(0, 3).Draw(t, "kind") {
		case 0:
			d.Routine = routine("f")
			values(1)
		case 1:
			d.Kind, d.Routine = deeds.Returned, routine("g")
			values(1)
			d.Result = confirmed(small.Draw(t, "result"))
		case 2:
			d.Routine = routine("h")
			values(2)
		case 3:
			d.Kind, d.Routine = deeds.Used, -1
			d.Accesses = []machine.Access{{Addr: small.Draw(t, "addr"),
				Size: rapid.IntRange(1, 2).Draw(t, "size"), At: machine.Confirmed}}
			d.Bases[0] = confirmed(small.Draw(t, "base"))
		}
		full = append(full, d)
		if hides {
			for k := range d.Arguments {
				d.Arguments[k] = deeds.Value{}
			}
			d.Result, d.Bases = deeds.Value{}, [2]deeds.Value{}
			if d.Kind == deeds.Used {
				d.Accesses = []machine.Access{{Size: 1}}
			}
		}
		partial = append(partial, d)
	}
	return full, partial
}

// ended is a match, by where it ends and what its names stand for.
type ended struct {
	end   uint64
	bound [mostBound]uint64
	known uint8
}

// readAll reads deeds by a matcher, and returns where the shortest matches begin, and how much was
// undecided up to each deed.
func readAll(t *rapid.T, v *valued, list []deeds.Deed) (found map[ended]uint64,
	undecided []uint64) {
	m := newMatcher(v)
	found = map[ended]uint64{}
	for i := range list {
		if err := m.read(&list[i]); err != nil {
			t.Fatal(err)
		}
		undecided = append(undecided, m.undecided)
		for _, s := range m.hits {
			key := ended{uint64(i), s.bound.is, s.bound.known}
			if at, ok := found[key]; !ok || s.since > at {
				found[key] = s.since
			}
		}
	}
	return found, undecided
}

// TestMatcherIsBruteForce: where all values are known, the matches are those that trying all ways
// to read each stretch finds. Where some are hidden, no other match is found, and where one is
// missing, something was undecided before.
func TestMatcherIsBruteForce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SampledFrom(valuedPatterns).Draw(t, "pattern")
		list, err := tokens(text)
		if err != nil {
			t.Fatal(err)
		}
		v := &valued{}
		p, err := parsePattern(list, v.add)
		if err == nil {
			err = v.compile(p)
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"f", "g", "h"} {
			v.routines.of(name)
		}
		full, partial := drawDeeds(t, v.routines.list)
		want := map[ended]uint64{}
		for since := range full {
			for _, w := range walks(v, p, full, []walk{{since, bindings{}}}) {
				if w.at > since {
					want[ended{uint64(w.at - 1), w.bound.is, w.bound.known}] = uint64(since)
				}
			}
		}
		got, undecided := readAll(t, v, full)
		if !maps.Equal(got, want) || undecided[len(full)-1] > 0 {
			t.Fatalf("%s: got %v, %v undecided, want %v", text, got, undecided, want)
		}
		some, undecided := readAll(t, v, partial)
		for m := range some {
			if _, ok := want[m]; !ok {
				t.Errorf("%s: %v is no match", text, m)
			}
		}
		for m := range want {
			if _, ok := some[m]; !ok && undecided[m.end] == 0 {
				t.Errorf("%s: %v is missing in silence", text, m)
			}
		}
	})
}

// A walk is a way to read deeds up to one.
type walk struct {
	at    int
	bound bindings
}

// walks are all ways in which a pattern reads on.
func walks(v *valued, p *pattern, did []deeds.Deed, from []walk) (list []walk) {
	switch p.op {
	case onePath:
		for _, w := range from {
			if w.at == len(did) {
				continue
			}
			d, bound := &did[w.at], w.bound
			is := p.atom == anyPath || v.atoms[p.atom].matches(d, &bound) == isMatch
			for _, other := range p.nor {
				unused := w.bound
				is = is || v.atoms[other].matches(d, &unused) == isMatch
			}
			if p.not {
				bound = w.bound
			}
			if is != p.not {
				list = append(list, walk{w.at + 1, bound})
			}
		}
		return list
	case sequence:
		for _, part := range p.of {
			from = walks(v, part, did, from)
		}
		return from
	case choice:
		for _, part := range p.of {
			list = append(list, walks(v, part, did, from)...)
		}
		return list
	}
	for n := 0; n <= p.most || p.most == unbounded; n++ {
		if n >= p.least {
			list = append(list, from...)
		}
		if from = walks(v, p.of[0], did, from); len(from) == 0 {
			break
		}
	}
	return list
}

// TestMatcherIsBounded: what would take ever more memory is refused.
func TestMatcherIsBounded(t *testing.T) {
	list, err := tokens("f(p) !f(p)* g(p)")
	if err != nil {
		t.Fatal(err)
	}
	v, err := newValued(list)
	if err != nil {
		t.Fatal(err)
	}
	m := newMatcher(v)
	m.most = 100
	for i := range uint64(200) {
		d := deeds.Deed{Arguments: [deeds.MostArguments]deeds.Value{confirmed(i)}}
		if err = m.read(&d); err != nil {
			break
		}
	}
	if err != errTooManyLive || len(m.live) != 100 {
		t.Errorf("%d states, error %v", len(m.live), err)
	}
}

// TestComparisons: numbers are compared by their low bytes, and a negative one is also that of an
// int, whose register has zeroes above.
func TestComparisons(t *testing.T) {
	for text, values := range map[string]map[uint64]bool{
		"f(-1)":    {1<<64 - 1: true, 1<<32 - 1: true, 1<<33 - 1: false, 255: false},
		"f(-1:1)":  {255: true, 0x1ff: true, 0: false},
		"f(<0:4)":  {1 << 31: true, 1: false, 1 << 63: false},
		"f(>=2)":   {2: true, 3: true, 1: false, 1 << 63: false},
		"f(!=0:2)": {1 << 16: false, 1: true},
		"f(<=1)":   {1: true, 2: false, 1<<64 - 5: true},
		"f(>1)":    {1: false, 2: true},
	} {
		list, err := tokens(text)
		if err != nil {
			t.Fatal(err)
		}
		v, err := newValued(list)
		if err != nil {
			t.Fatal(text, err)
		}
		for n, want := range values {
			d := deeds.Deed{}
			d.Arguments[0] = deeds.Value{Is: n, Known: machine.Unconfirmed}
			if got := v.atoms[0].matches(&d, &bindings{}); (got == isMatch) != want ||
				got == notKnown {
				t.Errorf("%s of %d: %v", text, n, got)
			}
		}
	}
}

// TestUses: memory is used by a register that holds the pointer, or at the byte there; a small
// number in a register is no pointer. Where it is not known what is accessed, nothing is.
func TestUses(t *testing.T) {
	known := func(addr uint64) machine.Access {
		return machine.Access{Addr: addr, Size: 4, At: machine.Confirmed}
	}
	unknown := machine.Access{Size: 4}
	for name, c := range map[string]struct {
		pattern string
		base    uint64
		access  machine.Access
		want    match
	}{
		"by a register":     {"use(0x20000)", 0x20000, known(0x20040), isMatch},
		"by an index":       {"use(8)", 8, known(0x20008), noMatch},
		"at the byte":       {"use(0x20003)", 0x20001, known(0x20000), isMatch},
		"beside":            {"use(0x20004)", 0x20001, known(0x20000), noMatch},
		"in the bytes":      {"use(0x20000,9)", 0, known(0x20008), isMatch},
		"behind the bytes":  {"use(0x20000,8)", 0x20000, known(0x20008), noMatch},
		"of no bytes":       {"use(0x20000,0)", 0, known(0x20000), noMatch},
		"nobody knows":      {"use(0x20000)", 0, unknown, notKnown},
		"but by a register": {"use(0x20000)", 0x20000, unknown, isMatch},
	} {
		list, err := tokens(c.pattern)
		if err != nil {
			t.Fatal(err)
		}
		v, err := newValued(list)
		if err != nil {
			t.Fatal(err)
		}
		d := deeds.Deed{Kind: deeds.Used, Accesses: []machine.Access{c.access},
			Bases: [2]deeds.Value{confirmed(c.base)}}
		if got := v.atoms[0].matches(&d, &bindings{}); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// TestFindValued: calls, returns and accesses of a snapshot, with their values.
func TestFindValued(t *testing.T) {
	s := querytest.Values()
	for pattern, want := range map[string]string{
		"clip(x)":                       "0+1 x=7, 1+1 x=3",
		"clip(x,5)=5":                   "",
		"clip(x,y,p)=5 use(p)":          "",
		"clip(x,y,p) use(p)":            "0+1 x=7 y=5 p=7000, 1+1 x=3 y=5 p=7000",
		"clip(x>5)":                     "0+1 x=7",
		"clip(x,_,p) .* use(p,8)":       "0+1 x=7 p=7000, 0+2 x=7 p=7000, 1+1 x=3 p=7000",
		"clip(_,_,p) !clip()* use(p,8)": "0+1 p=7000, 1+1 p=7000",
	} {
		r, err := Find(s, FindQuery{Pattern: pattern, First: 1, Top: 10})
		if err != nil {
			t.Errorf("%s: %v", pattern, err)
			continue
		}
		var got []string
		for _, o := range r.Occurrences {
			text := fmt.Sprintf("%d+%d", o.Position, o.Length)
			for _, b := range o.Match.Bound {
				text += fmt.Sprintf(" %s=%x", b.Name, b.Value)
			}
			got = append(got, text)
		}
		slices.SortFunc(got, func(a, b string) int { return cmp.Compare(a, b) })
		if text := strings.Join(got, ", "); text != want || r.Count != uint64(len(got)) {
			t.Errorf("%s: got %s, %d, want %s", pattern, text, r.Count, want)
		}
	}
	for pattern, want := range map[string]string{
		"clip#1(x)": "find clip#1(x): clip#1 is a path: of a call with values, name the routine",
		"free(p)": "find free(p): no routine free: name one as dump prints it, in quotes if " +
			"there are spaces or signs in it; and no traced code calls a function of that name",
	} {
		if _, err := Find(s, FindQuery{Pattern: pattern, First: 1}); err == nil ||
			err.Error() != want {
			t.Errorf("%s: %v, want %s", pattern, err, want)
		}
	}
}

// TestCheckValued: verdicts on rules with values.
func TestCheckValued(t *testing.T) {
	s := querytest.Values()
	s.Threads[0].Ended = true
	for rule, want := range map[string]string{
		"never clip(x>7)":                                  "kept",
		"never clip(x) clip(x)":                            "kept",
		"never clip(_,y) clip(_,y)":                        "1 broken: ran",
		"never clip(3) after clip(7)":                      "1 broken: ran after",
		"never clip(7) after clip(3)":                      "kept",
		"every clip(x) followed by clip(x)":                "2 broken: not followed up to the end",
		"every clip(7) followed by clip(3)":                "kept",
		"every clip(7) followed by clip(9) before clip(3)": "1 broken: not followed before",
		"never clip()=5":                                   "undecided",
		"every . followed by clip(9)":                      "1 broken: not followed up to the end",
		"every . followed by clip(3)":                      "1 broken: not followed up to the end", // itself
	} {
		r, err := Check(s, []string{rule})
		if err != nil {
			t.Errorf("%s: %v", rule, err)
			continue
		}
		x := r.Rules[0]
		got := "open"
		switch {
		case x.Kept:
			got = "kept"
		case x.Violations > 0:
			got = fmt.Sprintf("%d broken: %s", x.Violations, x.Witnesses[0].Why)
		case x.Undecided > 0:
			got = "undecided"
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", rule, got, want)
		}
	}
}

// TestStatesHaveAnOrder: of states that differ in anything one comes first, so that what is printed
// is the same each time.
func TestStatesHaveAnOrder(t *testing.T) {
	states := []stateKey{{}, {class: 1}, {bound: bindings{is: [mostBound]uint64{1}}},
		{bound: bindings{known: 1}}, {bound: bindings{unconfirmed: 1}}}
	for i, a := range states {
		for j, b := range states {
			order := compareStates(&state{stateKey: a}, &state{stateKey: b})
			if order == 0 != (i == j) {
				t.Errorf("%v is the same as %v: %d", a, b, order)
			}
		}
	}
}
