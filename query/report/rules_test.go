package report

import (
	"strings"
	"testing"

	"wpptrace/compress/wpp"
	"wpptrace/query/querytest"
	"wpptrace/query/rules"
)

// A rule that names a routine that never ran says so, whatever the verdict.
func TestVerdictsOfWhatNeverRan(t *testing.T) {
	s := querytest.Letters("abab")
	s.Routines = append(s.Routines, wpp.Routine{Name: "z", Entry: 0x9000, Paths: 3})
	checked, err := rules.Check(s,
		[]string{"z before b", "never z a", "never a b | z", "a before b"})
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := WriteRules(&out, s, checked); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"unmet   z before b: 2 times: z never ran\n",
		"kept    never z a: z never ran\n", "broken  never a b | z: 2 times: z never ran\n",
		"kept    a before b\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
}
