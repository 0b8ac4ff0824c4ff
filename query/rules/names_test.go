package rules

import (
	"testing"

	"wpptrace/query"
	"wpptrace/query/querytest"
)

func TestNames(t *testing.T) {
	s := querytest.Named("f", "g()", "g(int)", "operator()", "h#1", "a b", "it's", "before", "*")
	for _, tt := range []struct {
		name string
		want []uint32 // the paths, two of each routine
	}{
		{"f", []uint32{0, 1}},
		{"'f'", []uint32{0, 1}},
		{"f()", []uint32{0}},
		{"'f'()", []uint32{0}},
		{"'f()'", []uint32{0}},
		{"f#1", []uint32{1}},
		{"f#01", []uint32{1}},
		{"'f'#1", []uint32{1}},
		{"'f#1'", []uint32{1}},
		{"g()", []uint32{2, 3}},
		{"g()#1", []uint32{3}},
		{"'g()'", []uint32{2, 3}},
		{"'g()'()", []uint32{2}},
		{"'g()'#1", []uint32{3}},
		{`"g(int)"#1`, []uint32{5}},
		{"'g(int)#1'", []uint32{5}},
		{"'g(int)'()", []uint32{4}},
		{"'g(...'", []uint32{2, 3, 4, 5}},
		{"'...g(int)...'#1", []uint32{5}},
		{"'...pera...r...()'()", []uint32{6}},
		{"operator()", []uint32{6, 7}},
		{"operator()()", []uint32{6}},
		{"operator()#0", []uint32{6}},
		{"h#1", []uint32{8, 9}},
		{"h#1#1", []uint32{9}},
		{"'a b'#0", []uint32{10}},
		{"it's", []uint32{12, 13}},
		{`"it's"#1`, []uint32{13}},
		{"'*'", []uint32{16, 17}},
	} {
		r, err := Find(s, FindQuery{Pattern: tt.name, First: 1, Top: 100})
		if err != nil {
			t.Error(err)
			continue
		}
		var got []uint32
		for _, o := range r.Occurrences {
			got = append(got, o.Symbols...)
		}
		if len(got) != len(tt.want) || got[0] != tt.want[0] ||
			got[len(got)-1] != tt.want[len(tt.want)-1] {
			t.Errorf("%s is %d, want %d", tt.name, got, tt.want)
		}
		c, err := query.ContextOf(s, tt.name, 1) // takes one name, and needs no quotes
		if err != nil || c.Count != uint64(len(tt.want)) {
			t.Errorf("the context of %s: %+v, error %v", tt.name, c, err)
		}
	}
}

func TestNamesRefused(t *testing.T) {
	s := querytest.Named("f", "g()")
	for name, want := range map[string]string{
		"''": "find '': no routine '': name one as dump prints it, in quotes if there are " +
			"spaces or signs in it",
		"'f'x":   `find 'f'x: 'f'x: "x" is no number of a path`,
		"'f'#":   `find 'f'#: 'f'#: "" is no number of a path`,
		"'f'#-1": `find 'f'#-1: 'f'#-1: "-1" is no number of a path`,
		"h()#1": "find h()#1: no routine h(): name one as dump prints it, in quotes if there " +
			"are spaces or signs in it",
		"f(int)": "find f(int): it has no values: wpptrace values -F ROUTINES -- COMMAND, or -p " +
			"PID, records them; names with parentheses are put in quotes",
		"f(int*)": `find f(int*): "(" is neither a name, nor *, nor **: put names that hold it ` +
			"in quotes",
		"'f(int)'": "find 'f(int)': no routine f(int), but f",
		"f#2":      "find f#2: f#2: the routine has 2 paths",
		"'g()' '":  "find 'g()' ': no ' at the end of '",
	} {
		if _, err := Find(s, FindQuery{Pattern: name, First: 1}); err == nil ||
			err.Error() != want {
			t.Errorf("%s: error %v, want %s", name, err, want)
		}
	}
}

// A name in quotes is never a word of the language.
func TestRuleOfQuotedWords(t *testing.T) {
	s := querytest.Named("before", "never", "f")
	for rule, kept := range map[string]bool{
		"'before' before f":       true,
		"f before 'before'":       false,
		"'never' before 'before'": false,
	} {
		if r, err := Check(s, []string{rule}); err != nil || r.Rules[0].Kept != kept {
			t.Errorf("%s: %+v, error %v", rule, r, err)
		}
	}
	if _, err := Check(s, []string{"'never' f"}); err == nil {
		t.Error("a name is a word")
	}
}
